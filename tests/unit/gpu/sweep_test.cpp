#include "writers/devices/sweep.h"

#include <gtest/gtest.h>

#include "writers/devices/borders.h"
#include "writers/devices/median.h"

namespace aon::writers::devices {
namespace {

constexpr Launch kUnknownLaunch = {0, 0};

uint64_t idle(const DeviceTimes& times, IdleReason reason) {
  return times.idle_ns[static_cast<size_t>(reason)];
}
uint64_t busy(const DeviceTimes& times, WorkClass work) {
  return times.class_ns[static_cast<size_t>(work)];
}

TEST(Sweep, what_overlaps_is_busy_once) {
  Sweep sweep({});
  sweep.add({100, 200, WorkClass::kCompute}, kUnknownLaunch);
  sweep.add({150, 180, WorkClass::kCompute}, kUnknownLaunch);
  sweep.add({150, 260, WorkClass::kCopy}, kUnknownLaunch);
  sweep.finish();
  EXPECT_EQ(sweep.total().span_ns, 160u);
  EXPECT_EQ(sweep.total().busy_ns, 160u);
  EXPECT_EQ(busy(sweep.total(), WorkClass::kCompute), 100u);
  EXPECT_EQ(busy(sweep.total(), WorkClass::kCopy), 110u);
  EXPECT_EQ(sweep.total().only_copying_ns, 60u);
}

TEST(Sweep, keeps_no_more_than_a_device_can_do_at_a_time) {
  Sweep sweep({});
  for (uint64_t i = 0; i < 2 * Sweep::kMaxRunning; ++i)
    sweep.add({i, i + (uint64_t{1} << 40), WorkClass::kCompute}, kUnknownLaunch);
  sweep.finish();
  EXPECT_EQ(sweep.total().busy_ns, sweep.total().span_ns);
  EXPECT_EQ(sweep.last_ns(), 2 * Sweep::kMaxRunning - 1 + (uint64_t{1} << 40));
}

TEST(Sweep, tells_hidden_from_exposed_communication) {
  Sweep sweep({});
  sweep.add({100, 200, WorkClass::kCommunication}, kUnknownLaunch);
  sweep.add({120, 170, WorkClass::kCompute}, kUnknownLaunch);
  sweep.finish();
  EXPECT_EQ(sweep.total().overlap_ns, 50u);
  EXPECT_EQ(sweep.total().exposed_ns, 50u);
}

TEST(Sweep, a_gap_is_the_hosts_the_launchs_and_the_rest) {
  Sweep sweep({});
  sweep.add({100'000, 200'000, WorkClass::kCompute}, {50'000, 60'000});
  sweep.add({300'000, 400'000, WorkClass::kCompute}, {230'000, 250'000});
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kHostWait), 30'000u);
  EXPECT_EQ(idle(sweep.total(), IdleReason::kLaunch), 20'000u + kArrivalNs);
  EXPECT_EQ(idle(sweep.total(), IdleReason::kStarved), 50'000u - kArrivalNs);
  EXPECT_EQ(sweep.idle(IdleReason::kStarved).count, 1u);
  EXPECT_EQ(sweep.idle(IdleReason::kHostWait).max_ns, 30'000u);
  EXPECT_EQ(sweep.total().busy_ns, 200'000u);
  EXPECT_EQ(sweep.total().span_ns, 300'000u);
}

/// An H200: calls of 3.4 us, 2.4 us from the end of one to the begin of its kernel of 0.6 us.
TEST(Sweep, the_way_from_the_call_to_the_device_is_of_the_launch) {
  Sweep sweep({});
  for (uint64_t call_ns = 0; call_ns < 340'000; call_ns += 3400) {
    const uint64_t start_ns = call_ns + 3400 + 2400;
    sweep.add({start_ns, start_ns + 600, WorkClass::kCompute}, {call_ns, call_ns + 3400});
  }
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kLaunch), 99u * 2800);
  EXPECT_EQ(idle(sweep.total(), IdleReason::kStarved), 0u);
}

TEST(Sweep, nodes_behind_the_first_of_a_graph_are_there_already) {
  Sweep sweep({});
  const Launch graph = {50, 60};
  sweep.add({100, 200, WorkClass::kCompute}, graph);
  sweep.add({300, 400, WorkClass::kCompute}, graph);
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kStarved), 100u);
}

TEST(Sweep, work_that_was_launched_before_the_gap_starved) {
  Sweep sweep({});
  sweep.add({100'000, 200'000, WorkClass::kCompute}, {50'000, 60'000});
  sweep.add({300'000, 400'000, WorkClass::kCompute}, {70'000, 80'000});
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kStarved), 100'000u);
}

TEST(Sweep, without_a_launch_the_reason_is_unknown) {
  Sweep sweep({});
  sweep.add({100, 200, WorkClass::kCompute}, kUnknownLaunch);
  sweep.add({300, 400, WorkClass::kCompute}, kUnknownLaunch);
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kUnknown), 100u);
}

TEST(Sweep, a_launch_that_ends_behind_the_begin_of_its_work_stays_in_the_gap) {
  Sweep sweep({});
  sweep.add({100, 200, WorkClass::kCompute}, {50, 60});
  sweep.add({300, 400, WorkClass::kCompute}, {290, 350});
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kHostWait), 90u);
  EXPECT_EQ(idle(sweep.total(), IdleReason::kLaunch), 10u);
}

TEST(Sweep, knows_no_reason_for_a_gap_in_which_nothing_was_recorded) {
  const std::vector<BlindTime> blind = {{10, 50}, {210, 220}, {900, 950}};
  Sweep sweep({}, blind);
  sweep.add({100, 200, WorkClass::kCompute}, {50, 60});
  sweep.add({300, 400, WorkClass::kCompute}, {290, 295});
  sweep.add({500, 600, WorkClass::kCompute}, {490, 495});
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kUnrecorded), 100u);
  EXPECT_EQ(idle(sweep.total(), IdleReason::kHostWait), 90u);
}

/// Ten launches at once: the device has them queued, and one of them is not there.
TEST(Sweep, knows_no_reason_for_a_gap_where_a_launch_has_no_work) {
  const std::vector<uint64_t> missing_ns = {50};
  Sweep sweep({}, {}, missing_ns);
  sweep.add({1000, 2000, WorkClass::kCompute}, {30, 40});
  sweep.add({2100, 3000, WorkClass::kCompute}, {40, 45});
  sweep.add({4000, 5000, WorkClass::kCompute}, {60, 70});
  sweep.add({5100, 6000, WorkClass::kCompute}, {70, 80});
  sweep.finish();
  EXPECT_EQ(idle(sweep.total(), IdleReason::kUnrecorded), 1000u);
  EXPECT_EQ(sweep.total().busy_ns, 3800u);
}

TEST(Sweep, cuts_at_the_borders_of_windows) {
  Sweep sweep({{0, 150, {}}, {150, 350, {}}, {160, 170, {}}, {1000, 1100, {}}});
  sweep.add({100, 200, WorkClass::kCompute}, {50, 60});
  sweep.add({300, 400, WorkClass::kCopy}, {250, 260});
  sweep.finish();
  const auto& windows = sweep.windows();
  EXPECT_EQ(windows[0].times.busy_ns, 50u);
  EXPECT_EQ(windows[1].times.busy_ns, 100u);
  EXPECT_EQ(idle(windows[1].times, IdleReason::kHostWait), 50u);
  EXPECT_EQ(busy(windows[1].times, WorkClass::kCopy), 50u);
  EXPECT_EQ(windows[2].times.busy_ns, 10u);
  EXPECT_EQ(windows[3].times.busy_ns, 0u);
}

TEST(Sweep, nothing_is_nothing) {
  Sweep sweep({});
  sweep.finish();
  EXPECT_EQ(sweep.total().span_ns, 0u);
}

TEST(Bound, follows_the_documented_thresholds) {
  DeviceTimes times;
  times.span_ns = 1000;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kUnused);
  times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)] = 200;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kUnrecorded) << "what ran then is not known";
  EXPECT_EQ(bound_of(times, 10, 100), Bound::kUnrecorded) << "medians are of other times";
  times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)] = 0;
  times.busy_ns = 10;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kDevice);
  times.idle_ns[static_cast<size_t>(IdleReason::kStarved)] = 301;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kStarved);
  times.only_copying_ns = 301;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kCopy);
  times.exposed_ns = 301;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kCommunication);
  EXPECT_EQ(bound_of(times, 10, 100), Bound::kCommunication) << "it waits for other things, longer";
  times.idle_ns[static_cast<size_t>(IdleReason::kLaunch)] = 250;
  times.idle_ns[static_cast<size_t>(IdleReason::kStarved)] = 250;
  EXPECT_EQ(bound_of(times, 10, 100), Bound::kLaunch);
  times.idle_ns[static_cast<size_t>(IdleReason::kLaunch)] = 0;
  times.idle_ns[static_cast<size_t>(IdleReason::kStarved)] = 0;
  times.busy_ns = 950;
  EXPECT_EQ(bound_of(times, 10, 100), Bound::kCommunication) << "calls wait for a full queue";
  times.busy_ns = 10;
  times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 301;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kLaunch);
}

TEST(Bound, is_of_what_was_recorded) {
  DeviceTimes times;
  times.span_ns = 8000;
  times.busy_ns = 200;
  uint64_t& unrecorded_ns = times.idle_ns[static_cast<size_t>(IdleReason::kUnrecorded)];
  unrecorded_ns = 7000;
  times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 800;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kLaunch) << "800 of 1000";
  EXPECT_EQ(bound_of(times, 100, 10, kLeastRecordedOfStep), Bound::kUnrecorded);
  unrecorded_ns = 7300;
  times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 500;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kUnrecorded) << "less than a tenth";
}

/// Of a process two million calls are kept; later gaps have no reason.
TEST(Bound, is_not_of_gaps_whose_reason_is_unknown) {
  DeviceTimes times;
  times.span_ns = 1000;
  times.busy_ns = 300;
  times.idle_ns[static_cast<size_t>(IdleReason::kUnknown)] = 500;
  times.idle_ns[static_cast<size_t>(IdleReason::kStarved)] = 200;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kStarved) << "200 of 500";
  times.idle_ns[static_cast<size_t>(IdleReason::kStarved)] = 0;
  times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 200;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kLaunch);
  times.idle_ns[static_cast<size_t>(IdleReason::kHostWait)] = 0;
  times.idle_ns[static_cast<size_t>(IdleReason::kUnknown)] = 700;
  EXPECT_EQ(bound_of(times, 100, 10), Bound::kDevice);
  EXPECT_EQ(bound_of(times, 10, 100), Bound::kLaunch) << "it rests, whatever the reason";
}

TEST(Bound, counters_tell_where_nothing_was_recorded) {
  UnitUse units;
  EXPECT_EQ(bound_of(Bound::kUnrecorded, units), Bound::kUnrecorded);
  units.class_ns[static_cast<size_t>(UnitClass::kMemory)] = 10;
  EXPECT_EQ(bound_of(Bound::kUnrecorded, units), Bound::kMemory);
}

TEST(Borders, know_the_innermost_annotation) {
  Borders borders;
  borders.enter(100, 1);
  borders.enter(200, 2);
  borders.leave(300);
  borders.leave(400);
  EXPECT_EQ(borders.region_at(99), Borders::kNone);
  EXPECT_EQ(borders.region_at(100), 1u);
  EXPECT_EQ(borders.region_at(250), 2u);
  EXPECT_EQ(borders.region_at(300), 1u);
  EXPECT_EQ(borders.region_at(400), Borders::kNone);
}

TEST(Borders, know_nothing_behind_their_end) {
  Borders borders;
  borders.enter(100, 1);
  borders.close(200);
  EXPECT_EQ(borders.region_at(150), 1u);
  EXPECT_EQ(borders.region_at(201), Borders::kNone);
}

TEST(Median, is_right_within_a_tenth) {
  Median median;
  EXPECT_EQ(median.value(), 0u);
  for (uint64_t value = 1000; value < 3000; ++value) median.add(value);
  EXPECT_NEAR(static_cast<double>(median.value()), 2000, 200);
  Median small;
  for (const uint64_t value : {3, 3, 5}) small.add(value);
  EXPECT_EQ(small.value(), 3u);
  Median large;
  large.add(UINT64_MAX);
  EXPECT_GT(large.value(), UINT64_MAX / 10 * 9);
}

}  // namespace
}  // namespace aon::writers::devices
