#include "tools/owner_rights.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/owner.h"
#include "core/base/unique_fd.h"

namespace aon::tools {
namespace {

bool may_use(const std::string& dir, int rights) {
  return faccessat(AT_FDCWD, dir.c_str(), rights, AT_EACCESS) == 0;
}

/// As the effective user.
bool may_use_all(const std::vector<std::string>& dirs) {
  return may_use(dirs.front(), R_OK | W_OK | X_OK) &&
         std::all_of(dirs.begin(), dirs.end(),
                     [](const std::string& dir) { return may_use(dir, R_OK | X_OK); });
}

/// With the directory's group alone. Half a change would be worse than none.
void become(const char* command, uid_t user, gid_t group) {
  const bool is_done = setgroups(1, &group) == 0 && setresgid(group, group, group) == 0 &&
                       setresuid(user, user, user) == 0;
  if (is_done) return;
  fmt::print(stderr, "aon {}: cannot become user {}\n", command, user);
  exit(EXIT_FAILURE);
}

/// Tries it for a moment.
bool gets_there(uid_t user, gid_t group, const std::vector<std::string>& dirs) {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  if (count < 0 || setgroups(1, &group) != 0) return false;
  const gid_t own_group = getegid();
  const bool is_user = setegid(group) == 0 && seteuid(user) == 0;
  const bool is_there = is_user && may_use_all(dirs);
  const bool is_back = seteuid(0) == 0 && setegid(own_group) == 0 &&
                       setgroups(static_cast<size_t>(count), groups.data()) == 0;
  if (!is_back) exit(EXIT_FAILURE);
  return is_there;
}

}  // namespace

void take_owner_rights(const char* command, const std::vector<std::string>& dirs) {
  if (geteuid() != 0) return;
  const UniqueFd fd(open(dirs.front().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat folder {};
  if (!fd || fstat(fd.get(), &folder) != 0 || folder.st_uid == 0 || is_of_this_user(fd.get()))
    return;
  if (gets_there(folder.st_uid, folder.st_gid, dirs)) {
    become(command, folder.st_uid, folder.st_gid);
    return;
  }
  fmt::print(stderr, "aon {}: user {} does not get to {}: what is made there is root's\n", command,
             folder.st_uid, dirs.front());
}

}  // namespace aon::tools
