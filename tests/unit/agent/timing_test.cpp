#include "core/agent/timing.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/base/unique_fd.h"

namespace aon::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Beat, is_waited_for_until_the_next_multiple_of_its_period) {
  EXPECT_EQ(until_beat_ns(1000 * kMs, 50 * kMs), 50 * kMs) << "this one is over";
  EXPECT_EQ(until_beat_ns(1000 * kMs + 1, 50 * kMs), 50 * kMs - 1);
  EXPECT_EQ(until_beat_ns(1049 * kMs, 50 * kMs), kMs);
}

TEST(Beat, comes_once_in_each_period) {
  Beat beat(200 * kMs);
  EXPECT_TRUE(beat.is_due(1150 * kMs)) << "at once";
  EXPECT_FALSE(beat.is_due(1199 * kMs));
  EXPECT_TRUE(beat.is_due(1203 * kMs));
  EXPECT_FALSE(beat.is_due(1399 * kMs));
  EXPECT_TRUE(beat.is_due(1400 * kMs));
}

TEST(Beat, that_was_missed_is_not_made_up_for) {
  Beat beat(200 * kMs, 1200 * kMs);
  EXPECT_FALSE(beat.is_due(1399 * kMs));
  EXPECT_TRUE(beat.is_due(1950 * kMs));
  EXPECT_FALSE(beat.is_due(1960 * kMs));
  EXPECT_TRUE(beat.is_due(2000 * kMs));
}

TEST(Beat, goes_on_from_what_the_clock_says_when_it_was_set) {
  Beat beat(200 * kMs, 10'000 * kMs);
  EXPECT_TRUE(beat.is_due(1010 * kMs));
  EXPECT_FALSE(beat.is_due(1100 * kMs));
  EXPECT_TRUE(beat.is_due(1200 * kMs));
}

TEST(Beat, waits_for_events_no_shorter_than_it_was_told) {
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event events[1]{};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for_events(epoll.get(), events, 2 * kMs + 1), 0);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2));
  EXPECT_EQ(wait_for_events(epoll.get(), events, 0), 0);
}

}  // namespace
}  // namespace aon::agent
