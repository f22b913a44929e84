/// A file system that shows another owner than the user who makes a file, as NFS does for root
/// (root_squash), for tests that root runs.
#pragma once

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace aon::test {

constexpr uid_t kShownOwner = 65534;

/// While it lives, what this thread makes is kShownOwner's, and it may do what that one may.
class Squashed {
 public:
  Squashed() { setfsuid(kShownOwner); }
  ~Squashed() { setfsuid(geteuid()); }
  Squashed(const Squashed&) = delete;
  Squashed& operator=(const Squashed&) = delete;
};

/// A new folder of kShownOwner's, below `where`.
inline std::string shown_folder(const std::string& where) {
  std::string name = where + "/squashed-XXXXXX";
  if (mkdtemp(name.data()) == nullptr || chown(name.c_str(), kShownOwner, kShownOwner) != 0)
    return {};
  return name;
}

}  // namespace aon::test
