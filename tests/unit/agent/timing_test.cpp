#include "core/agent/timing.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/base/unique_fd.h"

namespace aon::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Beat, comes_at_multiples_of_its_period) {
  EXPECT_EQ(until_beat_ns(1000 * kMs, 50 * kMs), 50 * kMs) << "this one is over";
  EXPECT_EQ(until_beat_ns(1000 * kMs + 1, 50 * kMs), 50 * kMs - 1);
  EXPECT_EQ(until_beat_ns(1049 * kMs, 50 * kMs), kMs);
  EXPECT_GE(until_beat_ns(50 * kMs), 1u);
  EXPECT_LE(until_beat_ns(50 * kMs), 50 * kMs);
}

TEST(Beat, does_not_drift_with_what_comes_early_or_late) {
  uint64_t due_ns = next_beat_ns(0, 1000 * kMs, 200 * kMs);
  EXPECT_EQ(due_ns, 1200 * kMs);
  due_ns = next_beat_ns(due_ns, 1203 * kMs, 200 * kMs);
  EXPECT_EQ(due_ns, 1400 * kMs);
  due_ns = next_beat_ns(due_ns, 1399 * kMs, 200 * kMs);
  EXPECT_EQ(due_ns, 1600 * kMs);
}

TEST(Beat, waits_for_events_no_shorter_than_it_was_told) {
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event events[1]{};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(wait_for_events(epoll.get(), events, 2 * kMs + 1), 0);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2));
  EXPECT_EQ(wait_for_events(epoll.get(), events, 0), 0);
}

TEST(Beat, that_was_missed_is_not_made_up_for) {
  EXPECT_EQ(next_beat_ns(1200 * kMs, 1399 * kMs, 200 * kMs), 1400 * kMs);
  EXPECT_EQ(next_beat_ns(1200 * kMs, 1900 * kMs, 200 * kMs), 2100 * kMs);
}

}  // namespace
}  // namespace aon::agent
