#include "core/base/owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/unique_fd.h"

namespace aon {

bool is_of_this_user(int fd) {
  struct stat folder {};
  if (fstat(fd, &folder) != 0) return false;
  if (folder.st_uid == geteuid()) return true;
  // Job directories count this name among those that are about to go (launcher/job_directory.cpp).
  const std::string name = ".launch-owner-" + std::to_string(getpid());
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd file(openat(fd, name.c_str(), flags, 0600));
  struct stat own {};
  const bool is_known = file && fstat(file.get(), &own) == 0;
  if (file) unlinkat(fd, name.c_str(), 0);
  return is_known && own.st_uid == folder.st_uid;
}

bool is_own_folder(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  return fd && fstat(fd.get(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         is_of_this_user(fd.get());
}

}  // namespace aon
