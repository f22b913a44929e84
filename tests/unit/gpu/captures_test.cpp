#include "writers/devices/captures.h"

#include <gtest/gtest.h>

#include "writers/devices/calls.h"
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

/// A launch at each of these times, of which that at 350 has a kernel.
Calls launches() {
  Calls calls;
  for (const uint32_t time : {50u, 150u, 250u, 350u})
    calls.add({time, 1, 0, 1, time == 350u ? 1u : 0u, time, time + 10});
  return calls;
}

TEST(CapturesTest, launches_into_one_are_not_missing) {
  Calls calls = launches();
  EXPECT_EQ(MissingLaunches(calls).count(0, 1000), 3u);
  calls.captures().add({100, 1, true});
  calls.captures().add({300, 1, false});
  const MissingLaunches missing(calls);
  EXPECT_EQ(missing.count(0, 1000), 1u);
  EXPECT_FALSE(missing.are_many(100, 1000));
}

TEST(CapturesTest, of_graphs_without_a_recorded_capture_nothing_is_known) {
  Calls calls = launches();
  calls.add({500, 1, 1, 0, 1, 500, 510});
  EXPECT_EQ(MissingLaunches(calls).count(0, 1000), 0u);
  calls.captures().add({200, 1, true});
  calls.captures().add({300, 1, false});
  EXPECT_EQ(MissingLaunches(calls).count(0, 1000), 2u);
}

TEST(CapturesTest, beside_rests_of_the_budget_may_have_been_in_them) {
  Calls calls = launches();
  calls.captures().note_rest();
  EXPECT_EQ(MissingLaunches(calls).count(0, 1000), 3u) << "none is known of";
  calls.captures().add({10, 1, true});
  calls.captures().add({20, 1, false});
  EXPECT_EQ(MissingLaunches(calls).count(0, 1000), 0u);
  calls.clear();
  EXPECT_FALSE(calls.captures().has_rests());
}

}  // namespace
}  // namespace aon::writers::devices
