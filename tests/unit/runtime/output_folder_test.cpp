// Where a process without an agent leaves its records: never in a folder, or behind a link, that
// another user has made under the name of the output.
#include "core/runtime/output_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/unit/runtime/child.h"
#include "tests/unit/runtime/life.h"
#include "tests/unit/squashed.h"

namespace aon::test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = kShownOwner;

class OutputFolder : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "making files of another user needs root";
    char name[] = "/tmp/aon-output-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(chmod(name, 0777), 0);
    output_ = folder_ / "job.0";
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    node_ = fs::path("spool") / host;
    setenv("AON_OUTPUT", output_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("AON_OUTPUT");
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  static void give_away(const fs::path& path) {
    ASSERT_EQ(lchown(path.c_str(), kOther, kOther), 0);
    if (!fs::is_symlink(path)) {
      ASSERT_EQ(chmod(path.c_str(), 0777), 0);
    }
  }

  /// By a descriptor and by name.
  static bool is_used() {
    static char path[PATH_MAX];
    const int fd = runtime::open_node_folder(path);
    if (fd >= 0) close(fd);
    const bool is_found = runtime::find_node_folder(path);
    EXPECT_EQ(is_found, fd >= 0);
    return fd >= 0;
  }

  /// What lies in `place` after a process that records and one that cannot have a ring.
  size_t made_in(const fs::path& place) const {
    for (const char* name : {"exit", "without_keys"}) {
      Child child({kLifeChild, name},
                  {{"AON_OUTPUT", output_}, {"AON_SOCKET", "/nonexistent"}, {"AON_MEMORY", "2M"}});
      EXPECT_EQ(child.wait(), 0);
    }
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(place)) ++count;
    return count;
  }

  fs::path folder_;
  fs::path output_;
  fs::path node_;  ///< below the output
};

TEST_F(OutputFolder, is_made_where_it_is_missing) {
  EXPECT_TRUE(is_used());
  EXPECT_EQ(fs::status(output_).permissions(), fs::perms::owner_all);
  EXPECT_EQ(made_in(output_ / node_), 2u);
  setenv("AON_OUTPUT", (output_.string() + "//").c_str(), 1);
  EXPECT_TRUE(is_used());
}

TEST_F(OutputFolder, is_its_owners_whatever_the_umask) {
  for (const mode_t mask : {0777, 0177}) {
    const mode_t before = umask(mask);
    const bool is_made = is_used();
    umask(before);
    EXPECT_TRUE(is_made) << mask;
    for (const fs::path& path : {output_, output_ / "spool", output_ / node_})
      EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path << mask;
    fs::remove_all(output_);
  }
}

/// A project's files are of its group, and so of its quota.
TEST_F(OutputFolder, hands_its_group_on) {
  ASSERT_EQ(chown(folder_.c_str(), 0, kOther), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 02777), 0);
  for (const mode_t mask : {0777, 0077}) {
    const mode_t before = umask(mask);
    const bool is_made = is_used();
    umask(before);
    EXPECT_TRUE(is_made) << mask;
    for (const fs::path& path : {output_, output_ / "spool", output_ / node_}) {
      struct stat status {};
      ASSERT_EQ(stat(path.c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 07777, 02700u) << path << mask;
      EXPECT_EQ(status.st_gid, kOther) << path << mask;
    }
    fs::remove_all(output_);
  }
}

TEST_F(OutputFolder, of_another_user_gets_nothing) {
  fs::create_directories(output_ / node_);
  for (const fs::path& planted : {output_ / node_, output_ / "spool", output_}) {
    give_away(planted);
    EXPECT_FALSE(is_used()) << planted;
    EXPECT_EQ(made_in(output_ / node_), 0u) << planted;
    ASSERT_EQ(chown(planted.c_str(), 0, 0), 0);
    EXPECT_TRUE(is_used()) << planted;
  }
}

TEST_F(OutputFolder, behind_a_link_of_another_user_gets_nothing) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere / node_);
  for (const fs::path& link : {output_, output_ / "spool", output_ / node_}) {
    const bool is_output = link == output_;
    if (!is_output) fs::create_directories(link.parent_path());
    const fs::path target = is_output                   ? elsewhere
                            : link == output_ / "spool" ? elsewhere / "spool"
                                                        : elsewhere / node_;
    fs::create_directory_symlink(target, link);
    give_away(link);
    EXPECT_FALSE(is_used()) << link;
    EXPECT_EQ(made_in(elsewhere / node_), 0u) << link;
    ASSERT_EQ(lchown(link.c_str(), 0, 0), 0);
    EXPECT_TRUE(is_used()) << link;
    fs::remove(link);
  }
}

TEST_F(OutputFolder, behind_an_own_link_has_to_be_an_own_one) {
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere / node_);
  fs::create_directory_symlink(elsewhere, output_);
  EXPECT_EQ(made_in(elsewhere / node_), 2u);
  give_away(elsewhere);
  EXPECT_FALSE(is_used());
}

TEST_F(OutputFolder, is_the_users_where_the_file_system_shows_another_owner) {
  static char path[PATH_MAX];
  ASSERT_EQ(mkdir(output_.c_str(), 0700), 0);
  give_away(output_);
  {
    const Squashed squashed;
    const int fd = runtime::open_node_folder(path);
    EXPECT_GE(fd, 0);
    struct stat status {};
    EXPECT_EQ(fstat(fd, &status), 0);
    EXPECT_EQ(status.st_uid, kOther);
    close(fd);
    EXPECT_TRUE(fs::is_empty(output_ / node_));
    // As --spool-dir makes it, there.
    fs::rename(output_ / node_, output_ / "elsewhere");
    fs::create_directory_symlink("../elsewhere", output_ / node_);
    const int linked = runtime::open_node_folder(path);
    EXPECT_GE(linked, 0);
    close(linked);
  }
  give_away(output_ / "elsewhere");
  ASSERT_EQ(chown(output_.c_str(), 12345, 12345), 0);
  const Squashed squashed;
  EXPECT_EQ(runtime::open_node_folder(path), -1);
}

}  // namespace
}  // namespace aon::test
