// The thread that tells the drain thread of a bell that was rung.
#include "core/agent/bell.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace aon::agent {
namespace {

class BellWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    page_fd_ = BellWatch::create().value();
    void* page = mmap(nullptr, kBellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd_.get(), 0);
    ASSERT_NE(page, MAP_FAILED);
    bell_ = static_cast<Bell*>(page);
  }
  void TearDown() override { munmap(bell_, kBellBytes); }

  /// As a process does.
  void ring() {
    bell_->rings.fetch_add(1);
    syscall(SYS_futex, &bell_->rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  UniqueFd page_fd_;
  Bell* bell_ = nullptr;
};

TEST_F(BellWatchTest, each_time_is_seen_by_epoll_though_nobody_reads) {
  BellWatch watch(page_fd_.get());
  const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, watch.event_fd(), &event), 0);
  watch.start();
  EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 0), 0);
  for (int i = 0; i < 3; ++i) {
    ring();
    EXPECT_EQ(epoll_wait(epoll.get(), &event, 1, 60'000), 1);
  }
  watch.stop();
}

/// Else the program would be charged for it, and die where there is no memory left.
TEST_F(BellWatchTest, has_its_memory_before_anybody_touches_it) {
  struct stat status {};
  ASSERT_EQ(fstat(page_fd_.get(), &status), 0);
  EXPECT_GE(uint64_t(status.st_blocks) * 512, kBellBytes);
}

TEST_F(BellWatchTest, is_armed_and_disarmed_for_all_who_have_the_page) {
  BellWatch watch(page_fd_.get());
  watch.arm();
  EXPECT_EQ(bell_->armed, 1u);
  watch.disarm();
  EXPECT_EQ(bell_->armed, 0u);
}

TEST_F(BellWatchTest, without_a_page_does_nothing) {
  BellWatch watch(-1);
  watch.start();
  watch.arm();
  watch.disarm();
  watch.stop();
}

TEST_F(BellWatchTest, page_cannot_be_cut_off) { EXPECT_NE(ftruncate(page_fd_.get(), 0), 0); }

}  // namespace
}  // namespace aon::agent
