#include "core/cluster/meeting.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/temporary_folder.h"

namespace aon::cluster {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

constexpr hours kLongAgo{24 * 8};

/// A folder to meet in that holds more than launches.
class Meeting : public testing::Test {
 protected:
  void SetUp() override { announce("own", hours(0)); }

  static void age(const fs::path& path, hours age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }
  void announce(const std::string& launch, hours ago) const {
    const fs::path folder = root_ / launch;
    ASSERT_TRUE(announce_at(folder.string(), "n1", {random_token(), {{"127.0.0.1", 1}}}));
    ASSERT_TRUE(announce_at(folder.string(), kReceiverName, {random_token(), {}}));
    for (const char* file : {"n1.address", ".receiver.address"}) age(folder / file, ago);
    age(folder, ago);
  }
  bool is_there(const std::string& name) const { return fs::exists(root_ / name); }

  test::TemporaryFolder folder_;
  const fs::path& root_ = folder_.path();
};

TEST_F(Meeting, forgets_launches_that_were_killed_long_ago) {
  announce("killed", kLongAgo);
  announce("running", hours(24));
  remove_forgotten((root_ / "own").string());
  EXPECT_FALSE(is_there("killed"));
  EXPECT_TRUE(is_there("running/n1.address"));
  EXPECT_TRUE(is_there("own/n1.address"));
}

/// It may be anybody's home directory.
TEST_F(Meeting, leaves_alone_what_is_none_of_a_launch) {
  fs::create_directories(root_ / "empty");
  fs::create_directories(root_ / "mail");
  std::ofstream(root_ / "mail" / "friend.address") << "Some Street 1\n";
  fs::permissions(root_ / "mail" / "friend.address", fs::perms::owner_read);
  fs::create_directory_symlink("empty", root_ / "link");
  for (const char* path : {"mail/friend.address", "mail", "empty"}) age(root_ / path, kLongAgo);
  remove_forgotten((root_ / "own").string());
  EXPECT_TRUE(is_there("mail/friend.address"));
  EXPECT_TRUE(is_there("empty"));
  EXPECT_TRUE(is_there("link"));
}

/// A node whose clock is wrong ends nobody's launch.
TEST_F(Meeting, goes_by_the_clock_of_the_file_system) {
  announce("running", kLongAgo);
  age(root_ / "own", kLongAgo);
  remove_forgotten((root_ / "own").string());
  EXPECT_TRUE(is_there("running/n1.address"));
}

}  // namespace
}  // namespace aon::cluster
