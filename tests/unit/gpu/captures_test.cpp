#include "writers/devices/captures.h"

#include <gtest/gtest.h>

#include "writers/devices/missing_launches.h"

namespace aon::writers::devices {
namespace {

bool has(const Captures& captures, uint64_t time_ns) {
  return captures.times().overlap_ns(time_ns, time_ns + 1) != 0;
}

TEST(CapturesTest, last_from_their_begin_to_their_end) {
  Captures captures;
  captures.add({200, 1, false});
  captures.add({100, 1, true});
  for (const uint64_t time_ns : {100, 199}) EXPECT_TRUE(has(captures, time_ns)) << time_ns;
  for (const uint64_t time_ns : {99, 200, 300}) EXPECT_FALSE(has(captures, time_ns)) << time_ns;
}

TEST(CapturesTest, of_the_same_time_end_with_the_last_one) {
  Captures captures;
  captures.add({100, 1, true});
  captures.add({110, 1, true});
  captures.add({150, 2, true});
  captures.add({120, 1, false});
  captures.add({130, 1, false});
  captures.add({200, 2, false});
  for (const uint64_t time_ns : {105, 125, 160}) EXPECT_TRUE(has(captures, time_ns)) << time_ns;
  for (const uint64_t time_ns : {99, 140, 200}) EXPECT_FALSE(has(captures, time_ns)) << time_ns;
}

TEST(CapturesTest, without_a_begin_or_an_end_are_rather_too_long) {
  Captures captures;
  captures.add({100, 1, false});
  captures.add({200, 1, true});
  captures.add({300, 1, false});
  captures.add({400, 1, false});
  captures.add({500, 1, true});
  for (const uint64_t time_ns : {0, 99, 250, 350, 500, 1 << 30})
    EXPECT_TRUE(has(captures, time_ns)) << time_ns;
  for (const uint64_t time_ns : {150, 450}) EXPECT_FALSE(has(captures, time_ns)) << time_ns;
}

/// With a launch at each of these times, of which that at 350 has a kernel.
MissingLaunches missing_of(const Captures& captures, bool has_graphs = false) {
  MissingLaunches missing(captures, has_graphs);
  for (const uint64_t time_ns : {50, 150, 250, 350}) missing.add(time_ns, time_ns == 350);
  missing.sort();
  return missing;
}

TEST(CapturesTest, launches_into_one_are_not_missing) {
  Captures captures;
  EXPECT_EQ(missing_of(captures).count(0, 1000), 3u);
  captures.add({100, 1, true});
  captures.add({300, 1, false});
  const MissingLaunches missing = missing_of(captures);
  EXPECT_EQ(missing.count(0, 1000), 1u);
  EXPECT_FALSE(missing.are_many(100, 1000));
}

TEST(CapturesTest, of_graphs_without_a_recorded_capture_nothing_is_known) {
  Captures captures;
  EXPECT_EQ(missing_of(captures, true).count(0, 1000), 0u);
  captures.add({200, 1, true});
  captures.add({300, 1, false});
  EXPECT_EQ(missing_of(captures, true).count(0, 1000), 2u);
}

TEST(CapturesTest, beside_rests_of_the_budget_may_have_been_in_them) {
  Captures captures;
  captures.note_rest();
  EXPECT_EQ(missing_of(captures).count(0, 1000), 3u) << "none is known of";
  captures.add({10, 1, true});
  captures.add({20, 1, false});
  EXPECT_EQ(missing_of(captures).count(0, 1000), 0u);
  captures.clear();
  EXPECT_FALSE(captures.has_rests());
}

TEST(MissingLaunchesTest, of_any_number_are_counted_by_an_even_share) {
  constexpr uint64_t kCount = 3 * ThinnedTimes::kMaxTimes;
  MissingLaunches missing(Captures(), false);
  for (uint64_t i = 0; i < kCount; ++i) missing.add(i, i % 20 != 0);
  missing.sort();
  EXPECT_NEAR(static_cast<double>(missing.count(0, kCount)), kCount / 20.0, 1);
  EXPECT_FALSE(missing.are_many(0, kCount));
  MissingLaunches many(Captures(), false);
  for (uint64_t i = 0; i < kCount; ++i) many.add(i, i % 2 != 0);
  many.sort();
  EXPECT_LT(many.all().size(), ThinnedTimes::kMaxTimes);
  EXPECT_NEAR(static_cast<double>(many.count(kCount / 2, kCount)), kCount / 4.0, 8);
  EXPECT_TRUE(many.are_many(kCount / 2, kCount));
}

}  // namespace
}  // namespace aon::writers::devices
