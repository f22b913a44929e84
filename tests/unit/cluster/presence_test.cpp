#include "core/cluster/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/lease.h"
#include "core/cluster/address.h"
#include "tests/unit/temporary_folder.h"

namespace aon::cluster {
namespace {

namespace fs = std::filesystem;

class PresenceMarks : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(make_agents_folder(folder_)); }
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

  test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
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

/// Of a node that could not bring its spool: whoever makes the archive tells why.
TEST_F(PresenceMarks, tell_why_a_node_is_lost_where_that_is_known) {
  const LeaseOwner owner{local_host_name(), 999999999, 1, "delivered", true, "no room for it"};
  ASSERT_TRUE(write_lease_of(agent_lease(folder_, "n2"), owner));
  lose("n3");
  const std::vector<NodePresence> nodes = read_presence(folder_);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].presence, Presence::kLost);
  EXPECT_EQ(nodes[0].note, "no room for it");
  EXPECT_EQ(nodes[1].note, "");
}

/// Of a launch whose programs come one after the other: the spool may not go with the first.
TEST_F(PresenceMarks, tell_of_an_agent_that_waits_for_an_earlier_one) {
  EXPECT_FALSE(is_lease_awaited(folder_));
  auto waiting = Lease::take(waiting_lease(folder_, "n2"));
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(is_lease_awaited(folder_));
  EXPECT_EQ(summary(), "") << "it is no node beside the earlier one";
  waiting->release();
  EXPECT_FALSE(is_lease_awaited(folder_));
  std::ofstream(waiting_lease(folder_, "n3")) << local_host_name() << " 999999999 1 token\n";
  EXPECT_FALSE(is_lease_awaited(folder_)) << "it was killed";
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
  std::ofstream(waiting_lease(folder_, "n3")) << local_host_name() << " 999999999 1 token\n";
  {
    const auto waiting = Lease::take(waiting_lease(folder_, "n1"));
    mark_assembled(folder_, {});
    EXPECT_TRUE(is_lease_awaited(folder_)) << "who still waits is not in it";
    EXPECT_FALSE(fs::exists(waiting_lease(folder_, "n3"))) << "who was killed waits no more";
  }
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

/// Else the folder would stay for good.
TEST_F(PresenceMarks, that_cannot_be_written_leave_nothing_behind) {
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full{0, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const Status mark = mark_done(folder_, "n1", "a 1 2");
  const Status address = write_address(agents_folder(folder_), "n1", {random_token(), {}});
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, before);
  EXPECT_FALSE(mark);
  EXPECT_FALSE(address);
  EXPECT_TRUE(fs::is_empty(agents_folder(folder_)));
}

/// Of another node's agent, as it looks from here: just renewed, or not for long.
class Elsewhere : public PresenceMarks {
 protected:
  void SetUp() override {
    PresenceMarks::SetUp();
    notify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  }
  void TearDown() override {
    close(notify_);
    PresenceMarks::TearDown();
  }
  void hold(const std::string& node) {
    std::ofstream(agent_lease(folder_, node)) << "elsewhere 1 1 token\n";
  }
  void age(const std::string& node) {
    fs::last_write_time(agent_lease(folder_, node),
                        fs::file_time_type::clock::now() - std::chrono::minutes(2));
  }
  void watch() { ASSERT_GE(inotify_add_watch(notify_, agents_folder(folder_).c_str(), kWhat), 0); }
  /// Files made in the folder, and openings of marks, since the last call.
  std::pair<int, int> made_and_opened() const {
    std::pair<int, int> counts;
    alignas(inotify_event) char buffer[16384];
    for (ssize_t bytes = 0; (bytes = read(notify_, buffer, sizeof buffer)) > 0;) {
      for (const char* at = buffer; at < buffer + bytes;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        const bool is_mark = event->len != 0 && std::string_view(event->name).ends_with("e");
        counts.first += (event->mask & IN_CREATE) != 0 ? 1 : 0;
        counts.second += (event->mask & IN_OPEN) != 0 && is_mark ? 1 : 0;
        at += sizeof *event + event->len;
      }
    }
    return counts;
  }

  static constexpr uint32_t kWhat = IN_CREATE | IN_OPEN;
  int notify_ = -1;
};

TEST_F(Elsewhere, many_leases_are_read_by_one_look_at_the_clock) {
  for (int i = 10; i < 40; ++i) hold("n" + std::to_string(i));
  age("n20");
  watch();
  const std::vector<NodePresence> nodes = read_presence(folder_);
  EXPECT_EQ(made_and_opened().first, 1);
  ASSERT_EQ(nodes.size(), 30u);
  for (const NodePresence& one : nodes)
    EXPECT_EQ(one.presence, one.node == "n20" ? Presence::kLost : Presence::kLive) << one.node;
}

TEST_F(Elsewhere, who_waits_looks_at_one_that_lives) {
  for (int i = 10; i < 40; ++i) hold("n" + std::to_string(i));
  for (int i = 10; i < 30; ++i) ASSERT_TRUE(mark_done(folder_, "n" + std::to_string(i), "a 1 2"));
  LiveOthers others(folder_, "n12");
  ASSERT_TRUE(others.are_any());
  EXPECT_EQ(others.node_count(), 30u);
  watch();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(others.are_any());
  const auto [made, opened] = made_and_opened();
  EXPECT_EQ(made, 10);
  EXPECT_EQ(opened, 10);
}

TEST_F(Elsewhere, others_live_until_the_last_is_done_or_lost) {
  LiveOthers others(folder_, "n2");
  EXPECT_FALSE(others.are_any());
  for (const char* node : {"n1", "n2", "n3", "n4"}) hold(node);
  ASSERT_TRUE(mark_done(folder_, "n2", "a 1 2"));
  EXPECT_TRUE(others.are_any());
  ASSERT_TRUE(mark_done(folder_, "n3", "b 1 2"));
  EXPECT_TRUE(others.are_any());
  age("n4");
  EXPECT_TRUE(others.are_any());
  fs::remove(agent_lease(folder_, "n1"));
  EXPECT_FALSE(others.are_any());
  hold("n1");
  EXPECT_TRUE(others.are_any()) << "who shows up late is waited for, too";
}

TEST_F(PresenceMarks, of_no_folder_are_none) {
  fs::remove_all(agents_folder(folder_));
  EXPECT_EQ(summary(), "");
  EXPECT_FALSE(mark_done(folder_, "n1", "a 1 2"));
  EXPECT_FALSE(is_done(folder_, "n1", "a 1 2"));
}

}  // namespace
}  // namespace aon::cluster
