#include "core/agent/file_sink.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace aon::agent {

int FolderSink::open(const std::string& name) {
  const int fd =
      ::openat(folder_fd_, name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fd >= 0 ? fd : -errno;
}

void FolderSink::close(int fd) { ::close(fd); }

int FolderSink::write(int fd, std::span<const uint8_t> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

int FolderSink::truncate(int fd, uint64_t bytes) {
  return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

int FolderSink::sync(int fd) {
  // A file system that has no such call (EINVAL) has nothing to wait for.
  return ::fdatasync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

int FolderSink::reserve(int fd, uint64_t offset, uint64_t bytes) {
  return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(bytes)) == 0
             ? 0
             : errno;
}

int FolderSink::unlink(const std::string& name) {
  return ::unlinkat(folder_fd_, name.c_str(), 0) == 0 ? 0 : errno;
}

int FolderSink::rename(const std::string& from, const std::string& to) {
  return ::renameat(folder_fd_, from.c_str(), folder_fd_, to.c_str()) == 0 ? 0 : errno;
}

std::optional<DiskSpace> FolderSink::space() {
  struct statvfs status {};
  if (::fstatvfs(folder_fd_, &status) != 0) return std::nullopt;
  return DiskSpace{status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize};
}

}  // namespace aon::agent
