#include "core/cluster/meeting.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

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

/// A node that takes the addresses of the others to its own job directory.
class Mirrored : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_agents_folder(root_));
    announce("n2", token_);
    mirror_ = std::make_unique<AddressMirror>(agents_, meeting_, "n1");
    mirror_->step();
  }
  void TearDown() override { close(notify_); }

  void announce(const std::string& node, const Token& token) const {
    ASSERT_TRUE(announce_at(meeting_, node, {token, {{"127.0.0.1", 1}}}));
  }
  void look_again() {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    mirror_->step();
  }
  bool has(const std::string& node, const Token& token) const {
    const Result<AgentAddress> address = read_address(agents_, node);
    return address && address->token == token;
  }
  /// Addresses of the meeting folder that were opened since the last call.
  int opened() const {
    int count = 0;
    alignas(inotify_event) char buffer[16384];
    for (ssize_t bytes = 0; (bytes = read(notify_, buffer, sizeof buffer)) > 0;) {
      for (const char* at = buffer; at < buffer + bytes;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        const bool is_address =
            event->len != 0 && std::string_view(event->name).ends_with(".address");
        count += is_address ? 1 : 0;
        at += sizeof *event + event->len;
      }
    }
    return count;
  }

  test::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
  const std::string agents_ = agents_folder(root_);
  const std::string meeting_ = root_ + "/meeting";
  const Token token_ = random_token();
  const int notify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  std::unique_ptr<AddressMirror> mirror_;
};

TEST_F(Mirrored, addresses_that_have_not_changed_are_read_once) {
  EXPECT_TRUE(has("n2", token_));
  ASSERT_GE(inotify_add_watch(notify_, meeting_.c_str(), IN_OPEN), 0);
  look_again();
  EXPECT_EQ(opened(), 0);
  const Token other = random_token();
  announce("n2", other);
  announce("n3", token_);
  look_again();
  EXPECT_TRUE(has("n2", other)) << "a later agent's";
  EXPECT_TRUE(has("n3", token_));
}

TEST_F(Mirrored, addresses_go_with_their_agents_and_with_who_brought_them) {
  announce("n3", token_);
  look_again();
  remove_address(meeting_, "n2");
  look_again();
  EXPECT_FALSE(has("n2", token_));
  EXPECT_TRUE(has("n3", token_));
  mirror_.reset();
  EXPECT_FALSE(has("n3", token_));
}

/// Where nodes share the directory after all.
TEST_F(Mirrored, addresses_that_are_here_already_stay_their_owners) {
  const Token later = random_token();
  for (const Token& token : {token_, later}) {
    ASSERT_TRUE(write_address(agents_, "n3", {token, {}}));
    announce("n3", token);
    look_again();
  }
  mirror_.reset();
  EXPECT_TRUE(has("n3", later));
}

}  // namespace
}  // namespace aon::cluster
