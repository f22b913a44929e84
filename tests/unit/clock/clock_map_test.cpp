#include "core/clock/clock_map.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cmath>
#include <random>

namespace aon::clock {
namespace {

constexpr double kHz = 2.596e9;
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kEpochNs = 1'790'000'000 * kSecondNs;
constexpr uint64_t kFirstTicks = 400'000'000'000'000;
constexpr uint64_t kFirstRawNs = 154'000 * kSecondNs;

/// A node whose clocks run as told.
class Clocks {
 public:
  explicit Clocks(double hz = kHz) : hz_(hz) {}

  ClockDefinition at(double seconds) const {
    ClockDefinition snapshot{};
    snapshot.ticks = kFirstTicks + static_cast<uint64_t>(seconds * hz_);
    snapshot.monotonic_raw_ns =
        kFirstRawNs + static_cast<uint64_t>(seconds * 1e9) + shifted_raw_ns_;
    snapshot.realtime_ns = kEpochNs + static_cast<uint64_t>(seconds * 1e9) + shifted_real_ns_;
    snapshot.bracket_ticks = 104;
    return snapshot;
  }
  uint64_t ticks_at(double seconds) const { return at(seconds).ticks; }
  void shift_raw(int64_t ns) { shifted_raw_ns_ += static_cast<uint64_t>(ns); }
  void shift_real(int64_t ns) { shifted_real_ns_ += static_cast<uint64_t>(ns); }

 private:
  double hz_;
  uint64_t shifted_raw_ns_ = 0;
  uint64_t shifted_real_ns_ = 0;
};

void expect_near(uint64_t got, uint64_t expected, uint64_t tolerance) {
  EXPECT_LE(got > expected ? got - expected : expected - got, tolerance)
      << got << " for " << expected;
}

void expect_never_decreasing(const ClockMap& map, uint64_t first_ticks, uint64_t last_ticks) {
  std::mt19937_64 random(1);
  ClockMap::Cursor cursor(map);
  uint64_t last_ns = map.to_ns(first_ticks);
  const uint64_t step = (last_ticks - first_ticks) / 20'000 + 1;
  for (uint64_t ticks = first_ticks; ticks < last_ticks; ticks += 1 + random() % (2 * step)) {
    const uint64_t ns = cursor.to_ns(ticks);
    ASSERT_EQ(ns, map.to_ns(ticks));
    ASSERT_GE(ns, last_ns);
    last_ns = ns;
  }
}

TEST(ClockMap, follows_the_snapshots_within_a_few_ns) {
  const Clocks clocks;
  std::vector<ClockDefinition> snapshots;
  for (int second = 0; second <= 60; ++second) snapshots.push_back(clocks.at(second));
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  for (double second = -5; second < 120; second += 0.37) {
    const ClockDefinition truth = clocks.at(second + 5);
    const uint64_t ticks = truth.ticks - static_cast<uint64_t>(5 * kHz);
    expect_near(map.to_ns(ticks), truth.realtime_ns - 5 * kSecondNs, 5);
  }
  EXPECT_NEAR(map.ticks_per_second(), kHz, 1);
  EXPECT_FALSE(map.rate_is_assumed());
  EXPECT_EQ(map.step_count(), 0u);
  EXPECT_LE(map.max_error_ns(), 30u);
  expect_never_decreasing(map, kFirstTicks - 1'000'000'000, clocks.ticks_at(100));
}

TEST(ClockMap, measured_error_is_within_the_stated_bound) {
  const Clocks clocks;
  std::mt19937 random(7);
  std::vector<ClockDefinition> snapshots;
  for (int second = 0; second <= 30; ++second) {
    ClockDefinition snapshot = clocks.at(second);
    snapshot.monotonic_raw_ns += random() % 40 - 20;
    snapshots.push_back(snapshot);
  }
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  for (double second = 0; second < 30; second += 0.11) {
    const ClockDefinition truth = clocks.at(second);
    expect_near(map.to_ns(truth.ticks), truth.realtime_ns, 2 * map.max_error_ns());
  }
}

TEST(ClockMap, slewing_of_realtime_does_not_bend_it) {
  Clocks clocks;
  std::vector<ClockDefinition> snapshots;
  for (int second = 0; second <= 10; ++second) {
    snapshots.push_back(clocks.at(second));
    clocks.shift_real(400'000);
  }
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_EQ(map.step_count(), 0u);
  expect_near(map.to_ns(clocks.ticks_at(10)) - map.to_ns(clocks.ticks_at(0)), 10 * kSecondNs, 10);
}

TEST(ClockMap, realtime_set_forward_starts_a_segment_there) {
  Clocks clocks;
  std::vector<ClockDefinition> snapshots = {clocks.at(0), clocks.at(1)};
  clocks.shift_real(3600 * static_cast<int64_t>(kSecondNs));
  snapshots.push_back(clocks.at(2));
  snapshots.push_back(clocks.at(3));
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_EQ(map.step_count(), 1u);
  expect_near(map.to_ns(clocks.ticks_at(1.9)), kEpochNs + 1'900'000'000, 5);
  expect_near(map.to_ns(clocks.ticks_at(2.5)), kEpochNs + 3602 * kSecondNs + 500'000'000, 5);
  expect_never_decreasing(map, kFirstTicks, clocks.ticks_at(4));
}

TEST(ClockMap, realtime_set_back_does_not_turn_time_back) {
  Clocks clocks;
  std::vector<ClockDefinition> snapshots = {clocks.at(0), clocks.at(1)};
  clocks.shift_real(-3600 * static_cast<int64_t>(kSecondNs));
  snapshots.push_back(clocks.at(2));
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_EQ(map.step_count(), 1u);
  expect_near(map.to_ns(clocks.ticks_at(2.5)), kEpochNs + 2'500'000'000, 5);
  expect_never_decreasing(map, kFirstTicks, clocks.ticks_at(4));
}

TEST(ClockMap, suspend_takes_its_length_from_realtime) {
  Clocks clocks;
  std::vector<ClockDefinition> snapshots;
  for (int second = 0; second < 5; ++second) snapshots.push_back(clocks.at(second));
  clocks.shift_raw(-100 * static_cast<int64_t>(kSecondNs));  // stood still while ticks ran on
  for (int second = 105; second < 110; ++second) snapshots.push_back(clocks.at(second));
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_EQ(map.step_count(), 1u);
  EXPECT_NEAR(map.ticks_per_second(), kHz, 1);
  expect_near(map.to_ns(clocks.ticks_at(107.5)), kEpochNs + 107 * kSecondNs + 500'000'000, 10);
  expect_never_decreasing(map, kFirstTicks, clocks.ticks_at(120));
}

TEST(ClockMap, one_snapshot_needs_a_rate_and_says_so) {
  const Clocks clocks;
  const ClockDefinition only = clocks.at(0);
  const ClockMap map = ClockMap::fit({&only, 1}, TickSource::kTsc, kHz);
  EXPECT_TRUE(map.rate_is_assumed());
  EXPECT_GE(map.max_error_ns(), 100'000u);
  expect_near(map.to_ns(clocks.ticks_at(1)), kEpochNs + kSecondNs, 5);
  const ClockMap raw = ClockMap::fit({&only, 1}, TickSource::kMonotonicRaw);
  EXPECT_FALSE(raw.rate_is_assumed());
  EXPECT_EQ(raw.to_ns(only.ticks + 1000) - raw.to_ns(only.ticks), 1000u);
}

TEST(ClockMap, two_snapshots_give_rate_and_offset) {
  const Clocks clocks;
  const std::vector<ClockDefinition> snapshots = {clocks.at(20), clocks.at(0)};
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_FALSE(map.rate_is_assumed());
  expect_near(map.to_ns(clocks.ticks_at(10)), kEpochNs + 10 * kSecondNs, 10);
}

TEST(ClockMap, without_snapshots_ticks_are_ns) {
  const ClockMap map = ClockMap::fit({}, TickSource::kTsc);
  EXPECT_EQ(map.to_ns(12345), 12345u);
  EXPECT_TRUE(map.rate_is_assumed());
}

TEST(ClockMap, snapshots_that_contradict_are_dropped_and_counted) {
  const Clocks clocks;
  std::vector<ClockDefinition> snapshots = {clocks.at(0), clocks.at(1), clocks.at(2)};
  snapshots.push_back(clocks.at(1.5));
  snapshots.back().monotonic_raw_ns -= 100 * kSecondNs;
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  EXPECT_EQ(map.dropped_count(), 1u);
  expect_near(map.to_ns(clocks.ticks_at(1.7)), kEpochNs + 1'700'000'000, 5);
}

TEST(ClockMap, hostile_snapshots_still_give_a_map_that_never_decreases) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<ClockDefinition> snapshots;
    for (int i = 0; i < 1 + round % 7; ++i) {
      const auto value = [&random] { return random() >> (1 + random() % 60); };
      snapshots.push_back({value(), value(), value(), value()});
    }
    const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc, kHz);
    uint64_t last_ns = 0;
    const auto pieces = map.pieces();
    for (size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_GE(pieces[i].first_ns, last_ns);
      last_ns = pieces[i].first_ns;
      if (i + 1 < pieces.size()) {
        ASSERT_LE(map.to_ns(std::max(pieces[i + 1].first_ticks, uint64_t{1}) - 1),
                  pieces[i + 1].first_ns);
      }
    }
  }
}

TEST(ClockMap, times_beyond_any_clock_are_dropped) {
  const Clocks clocks;
  ClockDefinition late = clocks.at(1);
  late.realtime_ns = UINT64_MAX - 5;
  ClockDefinition later = clocks.at(2);
  later.monotonic_raw_ns = UINT64_MAX - 5;
  const ClockMap map =
      ClockMap::fit(std::vector{clocks.at(0), late, later, clocks.at(3)}, TickSource::kTsc);
  EXPECT_EQ(map.dropped_count(), 2u);
  expect_near(map.to_ns(clocks.ticks_at(3)), clocks.at(3).realtime_ns, 2);
}

TEST(ClockMap, realtime_that_goes_forward_and_back_again_and_again_does_not_overflow) {
  std::vector<ClockDefinition> snapshots;
  for (int i = 0; i < 20; ++i) {
    snapshots.push_back(Clocks().at(i));
    snapshots.back().realtime_ns = i % 2 == 0 ? 0 : uint64_t{1} << 62;
  }
  const ClockMap map = ClockMap::fit(snapshots, TickSource::kTsc);
  uint64_t last_ns = 0;
  for (const ClockMap::Piece& piece : map.pieces()) {
    EXPECT_GE(piece.first_ns, last_ns);
    last_ns = piece.first_ns;
  }
}

TEST(ClockMap, agrees_with_this_machines_clock) {
  const TickSource source = choose_tick_source();
  std::vector<ClockDefinition> snapshots = {take_snapshot(source)};
  const timespec pause{0, 20'000'000};
  nanosleep(&pause, nullptr);
  snapshots.push_back(take_snapshot(source));
  nanosleep(&pause, nullptr);
  const ClockDefinition later = take_snapshot(source);
  const ClockMap map = ClockMap::fit(snapshots, source);
  expect_near(map.to_ns(later.ticks), later.realtime_ns, 200'000);
}

}  // namespace
}  // namespace aon::clock
