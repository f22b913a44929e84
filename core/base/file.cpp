#include "core/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace aon {

Error errno_error(const std::string& what, const std::string& path, int error_number) {
  Code code = Code::kIo;
  if (error_number == ENOENT || error_number == ENOTDIR) code = Code::kNotFound;
  if (error_number == EACCES || error_number == EPERM) code = Code::kUnavailable;
  return {code, what + " " + path + ": " + std::strerror(error_number)};
}

Result<UniqueFd> open_file(const std::string& path, int flags, int mode) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != EINTR) return errno_error("open", path, errno);
  }
}

Result<size_t> read_at(int fd, void* buffer, size_t bytes, uint64_t offset) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, static_cast<char*>(buffer) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{Code::kIo, std::string("read: ") + std::strerror(errno)};
    done += static_cast<size_t>(got);
  }
  return done;
}

Status write_all(int fd, const void* buffer, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t put = ::write(fd, static_cast<const char*>(buffer) + done, bytes - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Error{Code::kIo, std::string("write: ") + std::strerror(errno)};
    done += static_cast<size_t>(put);
  }
  return {};
}

Result<std::string> read_text_file(const std::string& path, size_t limit_bytes) {
  Result<UniqueFd> file = open_file(path, O_RDONLY);
  if (!file) return file.error();
  std::string text;
  char part[4096];
  while (text.size() < limit_bytes) {
    const ssize_t got = ::read(file->get(), part, sizeof(part));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read", path, errno);
    text.append(part, static_cast<size_t>(got));
  }
  if (text.size() > limit_bytes) text.resize(limit_bytes);
  return text;
}

}  // namespace aon
