// A process whose ring fills up wakes the agent, once in each of its sleeps.
#include <aon/bell.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/unique_fd.h"
#include "tests/unit/runtime/child.h"
#include "tests/unit/runtime/fake_agent.h"

extern const char* const kLifeChild;  // the build writes it

namespace aon::test {
namespace {

class BellTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_.reset(memfd_create("bell", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd_.get(), kBellBytes), 0);
    void* page = mmap(nullptr, kBellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    ASSERT_NE(page, MAP_FAILED);
    bell_ = static_cast<Bell*>(page);
    options_.chunk_count = 64;
    options_.offered = 16;
    options_.drains = false;
    options_.bell_fd = fd_.get();
  }
  void TearDown() override { munmap(bell_, kBellBytes); }

  void seal() { ASSERT_EQ(fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0); }

  /// Runs a program that fills its ring, is offered more room, and goes on; `between` is called
  /// when it is full.
  template <class Between>
  void overflow(Between between) {
    FakeAgent agent(options_);
    Child child({kLifeChild, "overflow"}, {{"AON_SOCKET", agent.socket_path()}});
    EXPECT_EQ(child.read_line(), "full");
    between();
    agent.offer(child.pid(), 16);
    child.write("go on\n");
    EXPECT_EQ(child.wait(), 0);
    const TakenProcess taken = agent.finish(child.pid());
    EXPECT_EQ(taken.counted() + taken.refused(), 4010u);
  }

  UniqueFd fd_;
  Bell* bell_ = nullptr;
  FakeAgentOptions options_;
};

TEST_F(BellTest, is_rung_once_in_a_sleep_however_full_the_ring_is) {
  seal();
  bell_->armed = 1;
  overflow([this] {
    EXPECT_EQ(bell_->rings, 1u);
    EXPECT_EQ(bell_->armed, 0u);
    bell_->armed = 1;
  });
  EXPECT_EQ(bell_->rings, 2u);
}

TEST_F(BellTest, is_left_alone_while_the_agent_is_awake) {
  seal();
  overflow([this] { EXPECT_EQ(bell_->rings, 0u); });
  EXPECT_EQ(bell_->rings, 0u);
}

TEST_F(BellTest, that_could_be_cut_off_is_not_touched) {
  bell_->armed = 1;
  overflow([] {});
  EXPECT_EQ(bell_->rings, 0u);
}

}  // namespace
}  // namespace aon::test
