#include "core/runtime/output_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace aon::runtime {
namespace {

using HostName = char[HOST_NAME_MAX + 1];

/// An open folder of this user's.
struct Folder {
  int fd;
  uid_t shown_owner;
};

// System calls themselves, of which fakeroot knows nothing.
uid_t this_user() { return static_cast<uid_t>(syscall(SYS_geteuid)); }

bool look(int folder, const char* name, int flags, struct stat* status) {
  return syscall(SYS_newfstatat, folder, name, status, flags) == 0;
}

bool look(int fd, struct stat* status) { return syscall(SYS_fstat, fd, status) == 0; }

/// DIR in `path`, without slashes behind it. False: there is none, or no name for this node.
bool read_names(char (&path)[PATH_MAX], HostName& host) {
  const char* output = secure_getenv("AON_OUTPUT");
  if (output == nullptr || output[0] != '/') return false;
  size_t length = strlen(output);
  while (length > 1 && output[length - 1] == '/') --length;
  if (length >= sizeof path) return false;
  memcpy(path, output, length);
  path[length] = '\0';
  return gethostname(host, sizeof host - 1) == 0 && strchr(host, '/') == nullptr;
}

/// Whether a file that this process makes in `folder` has this owner.
bool is_owner_of_new_files(int folder, const HostName& host, uid_t owner) {
  constexpr char kName[] = ".launch-owner-";  // as core/base/owner.cpp
  char name[sizeof kName + sizeof host + 16];
  snprintf(name, sizeof name, "%s%s-%ld", kName, host, syscall(SYS_gettid));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = openat(folder, name, flags, 0600);
  if (fd < 0) return false;
  struct stat own = {};
  const bool is_known = look(fd, &own);
  unlinkat(folder, name, 0);
  close(fd);
  return is_known && own.st_uid == owner;
}

/// A folder that is mostly there already. The agent uses it too, whatever the umask of the program.
/// Only what that took comes back: a folder that hands on its group (setgid) goes on doing so. By a
/// descriptor, for before glibc 2.32 fchmodat() knows no AT_SYMLINK_NOFOLLOW.
void make(int parent, const char* name) {
  if (mkdirat(parent, name, 0700) != 0) return;
  const int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status = {};
  if (look(fd, &status) && (status.st_mode & S_IRWXU) != S_IRWXU) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    chmod(link, (status.st_mode & 07777) | S_IRWXU);
  }
  close(fd);
}

/// Opens a folder, made where it is missing, if it is this user's. False: not.
bool open_own(const Folder& parent, const char* name, const HostName& host, Folder* folder) {
  make(parent.fd, name);
  struct stat status = {};
  if (!look(parent.fd, name, AT_SYMLINK_NOFOLLOW, &status)) return false;
  const bool is_link = S_ISLNK(status.st_mode);
  const uid_t owner = status.st_uid;
  if (is_link && owner != this_user() && owner != 0 && owner != parent.shown_owner) return false;
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW);
  const int fd = openat(parent.fd, name, flags);
  if (fd < 0) return false;
  const bool is_own = look(fd, &status) && (status.st_uid == this_user() ||
                                            is_owner_of_new_files(fd, host, status.st_uid));
  if (!is_own) close(fd);
  *folder = {fd, status.st_uid};
  return is_own;
}

/// By what the names say now.
bool is_own(const char* path) {
  make(AT_FDCWD, path);
  struct stat status = {};
  if (!look(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, &status)) return false;
  if (S_ISLNK(status.st_mode)) {
    if (status.st_uid != this_user() && status.st_uid != 0) return false;
    if (!look(AT_FDCWD, path, 0, &status)) return false;
  }
  return S_ISDIR(status.st_mode) && status.st_uid == this_user();
}

}  // namespace

int open_node_folder(char (&path)[PATH_MAX]) {
  HostName host = {};
  if (!read_names(path, host)) return -1;
  Folder folder = {AT_FDCWD, this_user()};
  const char* names[] = {path, "spool", host};
  for (const char* name : names) {
    Folder next;
    const bool is_open = open_own(folder, name, host, &next);
    if (folder.fd != AT_FDCWD) close(folder.fd);
    if (!is_open) return -1;
    folder = next;
  }
  return folder.fd;
}

bool find_node_folder(char (&path)[PATH_MAX]) {
  HostName host = {};
  if (!read_names(path, host) || !is_own(path)) return false;
  const char* names[] = {"spool", host};
  for (const char* name : names) {
    const size_t length = strlen(path);
    const size_t room = sizeof path - length;
    if (strlen(name) + 2 > room) return false;
    path[length] = '/';
    memcpy(path + length + 1, name, strlen(name) + 1);
    if (!is_own(path)) return false;
  }
  return true;
}

}  // namespace aon::runtime
