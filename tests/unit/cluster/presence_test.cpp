#include "core/cluster/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/lease.h"
#include "core/cluster/address.h"

namespace aon::cluster {
namespace {

namespace fs = std::filesystem;

class PresenceMarks : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/aon-presence-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_TRUE(make_agents_folder(folder_));
  }
  void TearDown() override { fs::remove_all(folder_); }
  /// A lease of a process that is not there any more.
  void lose(const std::string& node) {
    std::ofstream(agent_lease(folder_, node)) << local_host_name() << " 999999999 1 token\n";
  }
  std::string summary() const {
    std::string text;
    for (const NodePresence& one : read_presence(folder_)) {
      constexpr const char* kNames[] = {"live", "done", "lost"};
      text += one.node + " " + kNames[static_cast<size_t>(one.presence)] + ", ";
    }
    return text;
  }

  std::string folder_;
};

TEST_F(PresenceMarks, tell_how_far_each_node_is) {
  EXPECT_EQ(summary(), "");
  const auto lease = Lease::take(agent_lease(folder_, "n2"));
  const auto done_lease = Lease::take(agent_lease(folder_, "n3.example.org"));
  ASSERT_TRUE(lease && done_lease);
  ASSERT_TRUE(mark_done(folder_, "n3.example.org", "a 1 2"));
  ASSERT_TRUE(mark_done(folder_, "n1", "a 1 2"));
  lose("n4");
  EXPECT_EQ(summary(), "n1 done, n2 live, n3.example.org done, n4 lost, ");
  EXPECT_EQ(read_presence(folder_)[1].pid, getpid());
  clear_done(folder_, "n3.example.org");
  EXPECT_EQ(summary(), "n1 done, n2 live, n3.example.org live, n4 lost, ");
}

TEST_F(PresenceMarks, go_with_the_archive) {
  ASSERT_TRUE(mark_done(folder_, "n1", "a 1 2"));
  ASSERT_TRUE(mark_done(folder_, "n2", "b 1 2"));
  lose("n3");
  const std::vector<NodePresence> before = read_presence(folder_);
  ASSERT_TRUE(mark_done(folder_, "n2", "b 3 4"));
  EXPECT_FALSE(is_done(folder_, "n2", "b 1 2")) << "a later agent of its node sees to it";
  mark_assembled(folder_, before);
  EXPECT_FALSE(is_done(folder_, "n1", "a 1 2"));
  EXPECT_TRUE(is_done(folder_, "n2", "b 3 4"));
  EXPECT_EQ(summary(), "n2 done, n3 lost, ") << "n2 finished while the archive was made";
  mark_assembled(folder_, read_presence(folder_));
  EXPECT_EQ(summary(), "n3 lost, ");
  fs::remove(agent_lease(folder_, "n3"));
  mark_assembled(folder_, {});
  EXPECT_FALSE(fs::exists(agents_folder(folder_)));
}

/// Whose mark has gone is in the archive, unless a later agent of its node took it away: whether
/// that one works, waits or was killed.
TEST_F(PresenceMarks, that_a_later_agent_took_away_are_not_in_the_archive) {
  ASSERT_TRUE(mark_done(folder_, "n1", "a 1 2"));
  clear_done(folder_, "n1");
  EXPECT_EQ(successor(folder_, "n1"), Successor::kNone);
  {
    const auto own = Lease::take(agent_lease(folder_, "n1"));
    ASSERT_TRUE(own);
    EXPECT_EQ(successor(folder_, "n1"), Successor::kNone);
  }
  lose("n1");
  EXPECT_EQ(successor(folder_, "n1"), Successor::kLost);
  std::ofstream(agent_lease(folder_, "n1")) << "other 1 1 token\n";  // just written: alive
  EXPECT_EQ(successor(folder_, "n1"), Successor::kWorks);
  fs::remove(agent_lease(folder_, "n1"));
  ASSERT_TRUE(mark_done(folder_, "n1", "a 3 4"));
  EXPECT_EQ(successor(folder_, "n1"), Successor::kWorks);
}

TEST_F(PresenceMarks, of_no_folder_are_none) {
  fs::remove_all(agents_folder(folder_));
  EXPECT_EQ(summary(), "");
  EXPECT_FALSE(mark_done(folder_, "n1", "a 1 2"));
  EXPECT_FALSE(is_done(folder_, "n1", "a 1 2"));
}

}  // namespace
}  // namespace aon::cluster
