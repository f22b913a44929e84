#include "core/base/owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "core/base/containers.h"
#include "core/base/unique_fd.h"

namespace aon {
namespace {

/// Which no other thread, process or node uses: agents of several look at one folder at a time.
std::string probe_name() {
  static std::atomic<uint32_t> counter{0};
  return ".launch-owner-" + host_of_pids() + "-" + std::to_string(getpid()) + "-" +
         std::to_string(counter.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

bool is_of_this_user(int fd) {
  struct stat folder {};
  if (fstat(fd, &folder) != 0) return false;
  if (folder.st_uid == geteuid()) return true;
  // Job directories count this name among those that are about to go (launcher/job_directory.cpp).
  const std::string name = probe_name();
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(openat(fd, name.c_str(), flags, 0600));
  struct stat own {};
  const bool is_known = file && fstat(file.get(), &own) == 0;
  if (file) unlinkat(fd, name.c_str(), 0);
  return is_known && own.st_uid == folder.st_uid;
}

bool is_of_this_user(int folder, int fd) {
  struct stat of_folder {};
  struct stat of_file {};
  return fstat(folder, &of_folder) == 0 && fstat(fd, &of_file) == 0 &&
         of_file.st_uid == of_folder.st_uid && is_of_this_user(folder);
}

bool is_own_file(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  if (status.st_uid == geteuid()) return true;
  const size_t slash = path.rfind('/');
  const std::string above = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd folder(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder && is_of_this_user(folder.get(), fd);
}

bool is_own_folder(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  return fd && fstat(fd.get(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         is_of_this_user(fd.get());
}

void close_to_others(int fd) {
  struct stat status {};
  if (fstat(fd, &status) == 0) (void)fchmod(fd, 0700 | (status.st_mode & S_ISGID));
}

}  // namespace aon
