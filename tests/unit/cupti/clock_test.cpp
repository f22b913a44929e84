#include "plugins/cupti/clock.h"

#include <gtest/gtest.h>

namespace aon::cupti {
namespace {

constexpr uint64_t kEpochNs = 1'700'000'000'000'000'000;

TEST(DeviceClock, goes_on_as_a_line_between_and_beyond_its_pairs) {
  DeviceClock clock;
  clock.add({1'000'000, kEpochNs});
  clock.add({3'000'000, kEpochNs + 1'000'000});
  EXPECT_EQ(clock.to_ticks(kEpochNs + 500'000), 2'000'000u);
  EXPECT_EQ(clock.to_ticks(kEpochNs - 100'000), 800'000u);
  EXPECT_EQ(clock.to_ticks(kEpochNs + 2'000'000), 5'000'000u);
}

TEST(DeviceClock, follows_a_rate_that_drifts) {
  DeviceClock clock;
  clock.add({1'000'000'000, kEpochNs});
  clock.add({3'000'000'000, kEpochNs + 1'000'000'000});
  clock.add({5'000'200'000, kEpochNs + 2'000'000'000});
  EXPECT_EQ(clock.to_ticks(kEpochNs + 500'000'000), 2'000'000'000u);
  EXPECT_EQ(clock.to_ticks(kEpochNs + 1'500'000'000), 4'000'100'000u);
}

TEST(DeviceClock, a_step_of_the_host_time_is_no_rate) {
  DeviceClock clock;
  clock.add({1'000'000'000, kEpochNs});
  clock.add({3'000'000'000, kEpochNs + 1'000'000'000});
  // An hour forward within a second.
  const uint64_t stepped_ns = kEpochNs + 3'602'000'000'000;
  clock.add({5'000'000'000, stepped_ns});
  EXPECT_EQ(clock.to_ticks(stepped_ns - 100'000'000), 4'800'000'000u);
  EXPECT_EQ(clock.to_ticks(kEpochNs + 500'000'000), 2'000'000'000u);
  // Before the step, though behind the pair.
  EXPECT_EQ(clock.to_ticks(kEpochNs + 1'100'000'000), 3'200'000'000u);
}

TEST(DeviceClock, a_host_time_that_is_set_back_moves_no_work) {
  constexpr uint64_t kStepAtNs = 1'050'000'000;  // between two pairs
  constexpr uint64_t kLastNs = 1'500'000'000;
  for (const uint64_t back_ns : {uint64_t{5'000'000'000}, uint64_t{3'600'000'000'000}}) {
    DeviceClock clock;
    const auto host_ns = [&](uint64_t ns) {
      return kEpochNs + ns - (ns < kStepAtNs ? 0 : back_ns);
    };
    const auto ticks = [](uint64_t ns) { return 10'000'000'000 + 2 * ns; };
    for (uint64_t ns = 0; ns <= kLastNs; ns += 100'000'000) clock.add({ticks(ns), host_ns(ns)});
    // In the order in which buffers may come, between pairs, around the step and behind the last.
    for (const uint64_t ns :
         {uint64_t{1'060'000'000}, uint64_t{1'250'000'000}, uint64_t{1'040'000'000},
          uint64_t{550'000'000}, uint64_t{1'090'000'000}, uint64_t{1'499'000'000},
          uint64_t{1'000'000'000}, uint64_t{1'520'000'000}}) {
      EXPECT_EQ(clock.to_ticks(host_ns(ns)), ticks(ns)) << ns << " ns, back by " << back_ns;
    }
  }
}

TEST(DeviceClock, a_first_rate_that_was_wrong_does_not_last) {
  DeviceClock clock;
  clock.add({1'000'000'000, kEpochNs});
  clock.add({1'050'000'000, kEpochNs + 20'000'000});  // 2.5 in place of 2
  for (uint64_t second = 1; second <= 4; ++second)
    clock.add(
        {1'050'000'000 + second * 2'000'000'000, kEpochNs + 20'000'000 + second * 1'000'000'000});
  const uint64_t last_ns = kEpochNs + 4'020'000'000;
  EXPECT_EQ(clock.to_ticks(last_ns + 1'000'000), 9'050'000'000u + 2'000'000);
}

TEST(DeviceClock, keeps_the_latest_pairs) {
  DeviceClock clock;
  for (uint64_t i = 0; i < 3 * DeviceClock::kPairs; ++i) {
    clock.add({(i + 1) * 2'000'000, kEpochNs + i * 1'000'000});
  }
  EXPECT_EQ(clock.pair_count(), DeviceClock::kPairs);
  const uint64_t last = 3 * DeviceClock::kPairs - 1;
  EXPECT_EQ(clock.to_ticks(kEpochNs + last * 1'000'000), (last + 1) * 2'000'000);
}

TEST(DeviceClock, times_before_the_zero_of_the_ticks_are_zero) {
  DeviceClock clock;
  clock.add({2'000, kEpochNs});
  clock.add({2'002'000, kEpochNs + 1'000'000});
  EXPECT_EQ(clock.to_ticks(kEpochNs - 999), 2u);
  EXPECT_EQ(clock.to_ticks(kEpochNs - 1'000), 0u);
  EXPECT_EQ(clock.to_ticks(kEpochNs - 1'001), 0u);
  EXPECT_EQ(clock.to_ticks(0), 0u);
}

TEST(DeviceClock, times_a_day_from_all_pairs_are_not_plausible) {
  constexpr uint64_t kDayNs = 24ull * 3600 * 1'000'000'000;
  DeviceClock clock;
  EXPECT_FALSE(clock.is_plausible(kEpochNs)) << "nothing is known";
  clock.add({1'000'000, kEpochNs});
  EXPECT_TRUE(clock.is_plausible(kEpochNs));
  EXPECT_TRUE(clock.is_plausible(kEpochNs - kDayNs));
  EXPECT_FALSE(clock.is_plausible(kEpochNs - kDayNs - 1));
  EXPECT_FALSE(clock.is_plausible(kEpochNs + kDayNs));
  EXPECT_FALSE(clock.is_plausible(1));
  EXPECT_FALSE(clock.is_plausible(UINT64_MAX));
  // Ten days later, and after the clock was set back.
  clock.add({2'000'000, kEpochNs + 10 * kDayNs});
  clock.add({3'000'000, kEpochNs + 5 * kDayNs});
  EXPECT_TRUE(clock.is_plausible(kEpochNs));
  EXPECT_TRUE(clock.is_plausible(kEpochNs + 10 * kDayNs + 1));
  EXPECT_FALSE(clock.is_plausible(kEpochNs + 11 * kDayNs));
}

TEST(DeviceClock, times_far_away_are_on_the_line) {
  DeviceClock clock;
  clock.add({1'000'000, kEpochNs});
  clock.add({3'000'000, kEpochNs + 1'000'000});
  constexpr uint64_t kFarNs = uint64_t{1} << 51;
  EXPECT_EQ(clock.to_ticks(kEpochNs + kFarNs), 1'000'000 + 2 * kFarNs);
  EXPECT_EQ(clock.to_ticks(kEpochNs + 1), 1'000'002u) << "and near again";
}

TEST(DeviceClock, without_pairs_knows_nothing) { EXPECT_EQ(DeviceClock().to_ticks(5), 0u); }

}  // namespace
}  // namespace aon::cupti
