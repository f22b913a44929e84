#include "core/agent/process_events.h"

#include <gtest/gtest.h>

namespace aon::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kCpuCount = 2;

class ProcessEventsTest : public testing::Test {
 protected:
  void attach(uint32_t process, uint64_t now_ns) {
    state_.header().process_count.store(process + 1);
    events_.put({true, process, 100, 0, 0, {}}, now_ns);
  }
  void end(uint32_t process, uint64_t now_ns) {
    events_.put({false, process, 0, 0, 0, {}}, now_ns);
  }

  UniqueFd state_fd_ = State::create().value();
  State state_ = State::map(state_fd_.get()).value();
  ProcessEvents events_{&state_, kCpuCount};
};

TEST_F(ProcessEventsTest, starts_wait_until_all_ranks_have_come) {
  state_.header().expected_ranks.store(3);
  EXPECT_FALSE(events_.is_due(0)) << "nothing is there";
  attach(0, 10 * kMs);
  attach(1, 20 * kMs);
  EXPECT_FALSE(events_.is_due(119 * kMs));
  attach(2, 119 * kMs);
  EXPECT_TRUE(events_.is_due(119 * kMs));
  EXPECT_EQ(events_.take().size(), 3u);
  EXPECT_TRUE(events_.is_empty());
  EXPECT_FALSE(events_.is_due(2000 * kMs));
}

TEST_F(ProcessEventsTest, starts_wait_half_a_second_at_most) {
  state_.header().expected_ranks.store(9);
  for (uint32_t cell = 0; cell < 6; ++cell) attach(cell, (100 + 90 * cell) * kMs);
  EXPECT_FALSE(events_.is_due(599 * kMs));
  EXPECT_TRUE(events_.is_due(600 * kMs)) << "the first is half a second old";
  EXPECT_EQ(events_.take().size(), 6u);
}

TEST_F(ProcessEventsTest, starts_do_not_wait_for_ranks_of_which_none_comes) {
  state_.header().expected_ranks.store(3);
  attach(0, 10 * kMs);
  EXPECT_FALSE(events_.is_due(109 * kMs));
  EXPECT_TRUE(events_.is_due(110 * kMs));
}

TEST_F(ProcessEventsTest, starts_do_not_wait_where_no_ranks_are_expected) {
  attach(0, 0);
  EXPECT_TRUE(events_.is_due(0));
}

TEST_F(ProcessEventsTest, more_ranks_than_cpus_want_the_cpus_until_all_have_come) {
  EXPECT_TRUE(events_.are_cpus_wanted()) << "nobody is there";
  state_.header().registered_count.store(1);
  EXPECT_FALSE(events_.are_cpus_wanted()) << "a program that may never come";
  state_.header().expected_ranks.store(kCpuCount);
  EXPECT_FALSE(events_.are_cpus_wanted()) << "each has one";
  state_.header().expected_ranks.store(kCpuCount + 1);
  EXPECT_TRUE(events_.are_cpus_wanted());
  for (uint32_t cell = 0; cell < kCpuCount + 1; ++cell) attach(cell, 0);
  EXPECT_FALSE(events_.are_cpus_wanted());
}

TEST_F(ProcessEventsTest, starts_of_more_ranks_than_cpus_wait_until_mpi_init_is_left) {
  state_.header().expected_ranks.store(3);
  state_.process(1).is_in_init.store(1);
  for (uint32_t cell = 0; cell < 3; ++cell) attach(cell, 0);
  EXPECT_FALSE(events_.is_due(600 * kMs));
  state_.process(1).is_in_init.store(0);
  EXPECT_TRUE(events_.is_due(600 * kMs));
}

TEST_F(ProcessEventsTest, starts_do_not_wait_for_mpi_init_where_each_rank_has_a_cpu) {
  state_.header().expected_ranks.store(kCpuCount);
  state_.process(0).is_in_init.store(1);
  for (uint32_t cell = 0; cell < kCpuCount; ++cell) attach(cell, 0);
  EXPECT_TRUE(events_.is_due(0));
}

TEST_F(ProcessEventsTest, starts_wait_for_a_long_mpi_init_three_seconds) {
  state_.header().expected_ranks.store(kCpuCount + 1);
  state_.process(0).is_in_init.store(1);
  attach(0, 10 * kMs);
  EXPECT_FALSE(events_.is_due(3009 * kMs));
  EXPECT_TRUE(events_.is_due(3010 * kMs));
}

TEST_F(ProcessEventsTest, an_end_does_not_wait_and_comes_behind_its_start) {
  state_.header().expected_ranks.store(3);
  attach(0, 0);
  attach(1, 0);
  end(0, 1);
  EXPECT_TRUE(events_.is_due(1));
  const std::vector<ProcessEvent> taken = events_.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_TRUE(taken.front().is_start);
  EXPECT_FALSE(taken.back().is_start);
  end(1, 2);
  EXPECT_TRUE(events_.is_due(2));
  events_.take();
  state_.header().expected_ranks.store(4);
  attach(2, 3);
  EXPECT_FALSE(events_.is_due(3)) << "the next start waits again";
}

}  // namespace
}  // namespace aon::agent
