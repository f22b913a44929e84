#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

namespace {

Error no_file(const std::string& path) { return {Code::kInvalid, "open " + path + ": is no file"}; }

}  // namespace

Result<UniqueFd> open_file(const std::string& path, int flags, int mode) {
  UniqueFd fd;
  while (fd.get() < 0) {
    fd = UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode));
    const bool is_pipe = errno == ENXIO;  // that nobody reads
    if (fd.get() < 0 && errno != EINTR)
      return is_pipe ? no_file(path) : errno_error("open", path, errno);
  }
  struct stat status;
  if ((flags & O_NONBLOCK) != 0) return fd;
  if (::fstat(fd.get(), &status) != 0) return errno_error("open", path, errno);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return no_file(path);
  return fd;
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
