/// fstat() and lstat() as the kernel has them: in libc they have their names since glibc 2.33 alone
/// (aon/old_libc.h).
/// Thread: any.   Signal: safe.   Errors: -1 and errno.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace aon::runtime {

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__)

inline int read_status(int fd, struct stat* out) {
  return static_cast<int>(syscall(SYS_fstat, fd, out));
}

/// Of the link itself, where `path` is one.
inline int read_link_status(const char* path, struct stat* out) {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW));
}

#else  // libc's structure is not the kernel's

inline int read_status(int fd, struct stat* out) { return fstat(fd, out); }
inline int read_link_status(const char* path, struct stat* out) { return lstat(path, out); }

#endif

}  // namespace aon::runtime
