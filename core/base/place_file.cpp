#include "core/base/place_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/base/unique_fd.h"

namespace aon {
namespace {

constexpr int kNotSupported = 524;  ///< ENOTSUPP, which NFS lets through to its users

/// What file systems say of calls that they do not have.
bool is_not_there(int error_number) {
  return error_number == EPERM || error_number == ENOSYS || error_number == EOPNOTSUPP ||
         error_number == EINVAL || error_number == kNotSupported;
}

int make_file(const std::string& path, const std::string& text) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(open(path.c_str(), flags, 0600));
  if (!fd) return errno;
  const ssize_t written = write(fd.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return 0;
  const int error_number = written < 0 ? errno : ENOSPC;
  unlink(path.c_str());
  return error_number;
}

}  // namespace

int place_file(const std::string& fresh, const std::string& path, const std::string& text) {
  if (link(fresh.c_str(), path.c_str()) == 0) return 0;
  if (!is_not_there(errno)) return errno;
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (!is_not_there(errno)) return errno;
  return make_file(path, text);
}

}  // namespace aon
