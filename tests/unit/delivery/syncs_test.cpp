// A disk that takes its time, under the feet of a receiver.
#include "core/delivery/syncs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/base/sync_files.h"
#include "tests/unit/delivery/delivery_case.h"

namespace {

std::atomic<int> g_sync_ms{0};
std::atomic<bool> g_is_held{false};  ///< no sync ends
std::atomic<int> g_whole_count{0};   ///< syncs of all of a file system

}  // namespace

// In place of the C library's, for all of this program.
extern "C" int fsync(int fd) {
  if (fd < 0) {
    errno = EBADF;
    return -1;
  }
  usleep(static_cast<useconds_t>(g_sync_ms) * 1000);
  while (g_is_held) usleep(1000);
  return 0;
}
extern "C" int syncfs(int fd) noexcept {
  ++g_whole_count;
  return fsync(fd);
}

namespace aon::delivery {
namespace {

class SlowDisk : public Delivery {
 protected:
  void TearDown() override {
    g_sync_ms = 0;
    g_is_held = false;
    Delivery::TearDown();
  }
  std::shared_ptr<UniqueFd> open_spool() const {
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    return std::make_shared<UniqueFd>(open(there_.c_str(), flags));
  }
  bool is_done(const std::string& node) const {
    return fs::exists(job_ / "agents" / (node + ".done"));
  }
};

TEST_F(SlowDisk, keeps_no_other_courier_waiting) {
  g_sync_ms = 4000;
  const UniqueFd first = offer_by_hand();
  ASSERT_TRUE(say(first, make_frame<cluster::Complete>()));
  usleep(100'000);
  Courier second(sender("n3"));
  EXPECT_TRUE(second.connect(address_));
  EXPECT_TRUE(wait_until([&] { return fs::exists(job_ / "spool" / "n3"); }));
  EXPECT_FALSE(is_done("n2")) << "it could be lost with this node";
  EXPECT_TRUE(wait_until([&] { return is_done("n2"); }));
}

/// Its agent has waited for long enough.
TEST_F(SlowDisk, has_what_came_whole_though_its_courier_goes) {
  g_sync_ms = 500;
  {
    const UniqueFd fd = offer_by_hand();
    ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
  }
  EXPECT_TRUE(is_marked(Presence::kDone));
}

TEST_F(SlowDisk, keeps_nobody_waiting_when_a_courier_goes) {
  g_is_held = true;
  {
    const UniqueFd fd = offer_by_hand();
    ASSERT_TRUE(say(fd, make_frame<cluster::Complete>()));
  }
  usleep(100'000);
  Courier second(sender("n3"));
  EXPECT_TRUE(second.connect(address_));
  EXPECT_TRUE(wait_until([&] { return fs::exists(job_ / "spool" / "n3"); }));
  EXPECT_FALSE(is_done("n2"));
  g_is_held = false;
  EXPECT_TRUE(wait_until([&] { return is_done("n2"); }));
}

/// Its agent goes on with its spool.
TEST_F(SlowDisk, keeps_no_successor_away) {
  g_is_held = true;
  write(there_ / "p0.0.aon", "of both");
  {
    Courier first(sender());
    ASSERT_TRUE(first.connect(address_));
    ASSERT_TRUE(first.send_rest());
    ASSERT_TRUE(is_there("p0.0.aon", "of both"));
  }
  usleep(100'000);
  Sender later = sender();
  later.pid = kPid + 1;
  Courier second(later);
  ASSERT_TRUE(second.connect(address_));
  const fs::path lease = cluster::agent_lease(job_.string(), "n2");
  EXPECT_TRUE(wait_until([&] {
    const auto owner = read_lease(lease.string());
    return owner && owner->pid == kPid + 1;
  }));
  g_is_held = false;
  ASSERT_TRUE(second.send_new());
  usleep(100'000);
  EXPECT_FALSE(is_done("n2")) << "the mark of the first over what the second brings";
  ASSERT_TRUE(second.send_rest());
  EXPECT_TRUE(is_marked(Presence::kDone));
  EXPECT_EQ(read(arrived("p0.0.aon")), "of both");
}

TEST_F(SlowDisk, is_synced_once_for_all_that_wait) {
  g_is_held = true;
  const auto folder = open_spool();
  Syncs syncs;
  syncs.add("first", folder, {});
  EXPECT_TRUE(syncs.take_done(std::chrono::milliseconds(0)).empty());
  const int before = g_whole_count;
  for (const char* mark : {"second", "third"})
    syncs.add(mark, folder, std::vector<std::string>(kMostSyncedFiles, "p0.0.aon"));
  EXPECT_TRUE(syncs.take_done(std::chrono::milliseconds(0)).empty());
  g_is_held = false;
  std::vector<std::string> done;
  while (syncs.are_any()) {
    for (const Synced& one : syncs.take_done(std::chrono::seconds(1))) {
      EXPECT_TRUE(one.status);
      done.push_back(one.mark);
    }
  }
  EXPECT_EQ(done, (std::vector<std::string>{"first", "second", "third"}));
  EXPECT_EQ(g_whole_count - before, 1);
}

TEST_F(SlowDisk, needs_no_descriptor_more) {
  const auto folder = open_spool();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  Syncs syncs;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  syncs.add("mark", folder, {});
  const std::vector<Synced> done = syncs.take_done(std::chrono::seconds(20));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE(done[0].status);
}

TEST_F(SlowDisk, is_told_of_what_is_not_there) {
  const auto folder = open_spool();
  Syncs syncs;
  syncs.add("ring", folder, {"fallback-7-1.ring"});
  syncs.add("segment", folder, {"p0.0.aon"});
  const std::vector<Synced> done = syncs.take_done(std::chrono::seconds(20));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_TRUE(done[0].status) << "part of the spool under another name";
  EXPECT_FALSE(done[1].status);
}

/// All of the file system, then: it is no reason to have it brought again.
TEST_F(SlowDisk, is_synced_where_a_file_cannot_be_opened_for_want_of_a_descriptor) {
  const auto folder = open_spool();
  write(there_ / "p0.0.aon", "all");
  const int whole_before = g_whole_count;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = sync_files(folder->get(), {"p0.0.aon"});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(g_whole_count - whole_before, 1);
}

/// A server that is gone never answers: whoever waits is told, and nobody is kept.
TEST_F(SlowDisk, that_never_ends_refuses_whom_it_keeps) {
  stop_receiver();
  longest_sync_ms_ = 300;
  start_receiver(true);
  g_is_held = true;
  Courier courier(sender());
  ASSERT_TRUE(courier.connect(address_));
  {
    const UniqueFd gone = offer_by_hand("n3");
    ASSERT_TRUE(say(gone, make_frame<cluster::Complete>()));
  }
  ASSERT_TRUE(courier.send_rest());
  EXPECT_EQ(told(&courier),
            job_.string() + " does not take it: its file system did not sync it in 0 s");
  EXPECT_EQ(courier.again(), cluster::Again::kNever);
  is_stopping_ = true;
  thread_.join();
  EXPECT_TRUE(wait_until([&] {
    receiver_->step(20);
    return receiver_->open_count() == 0 && receiver_->guest_count() == 0;
  }));
}

}  // namespace
}  // namespace aon::delivery
