#include "writers/profile/profile.h"

#include <aon/ring.h>
#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"
#include "writers/profile/late_begin.h"

namespace aon::writers::profile {
namespace {

using test::enter;
using test::leave;
using test::send;

class Profile : public testing::Test {
 protected:
  std::vector<RegionStatistics> run(const std::vector<Event>& events) {
    profile_.begin(model_.groups[0], model_.locations[0]);
    for (const Event& e : events) profile_.add(e);
    const auto rows = profile_.end();
    return {rows.begin(), rows.end()};
  }
  void use_process() { model_.groups[0].process = &process_; }

  Model model_ = test::make_model(2);
  spool::Process process_{};
  LocationProfile profile_{model_};
};

TEST_F(Profile, splits_time_between_caller_and_called) {
  const auto rows = run(
      {enter(100, 0), enter(110, 1), leave(150, 1), enter(160, 1), leave(161, 1), leave(200, 0)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].region, 9u);  // by global id
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[0].timed_count, 2u);
  EXPECT_EQ(rows[0].inclusive_ns, 41u);
  EXPECT_EQ(rows[0].min_ns, 1u);
  EXPECT_EQ(rows[0].max_ns, 40u);
  EXPECT_EQ(rows[0].histogram[0], 1u);
  EXPECT_EQ(rows[0].histogram[5], 1u);  // 32 to 64 ns
  EXPECT_EQ(rows[1].region, 10u);
  EXPECT_EQ(rows[1].inclusive_ns, 100u);
  EXPECT_EQ(rows[1].exclusive_ns, 59u);
}

TEST_F(Profile, counts_time_of_recursion_once) {
  const auto rows = run({enter(0, 0), enter(10, 0), leave(30, 0), leave(100, 0)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[0].inclusive_ns, 100u);
  EXPECT_EQ(rows[0].exclusive_ns, 100u);
}

TEST_F(Profile, weighs_sampled_calls) {
  const auto rows = run({enter(0, 1), enter(50, 0, 8), leave(54, 0), leave(100, 1)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].count, 8u);
  EXPECT_EQ(rows[1].timed_count, 1u);
  EXPECT_EQ(rows[1].inclusive_ns, 32u);
  EXPECT_EQ(rows[1].max_ns, 4u);
  EXPECT_EQ(rows[1].histogram[2], 8u);
  EXPECT_EQ(rows[0].exclusive_ns, 68u);
}

TEST_F(Profile, never_makes_exclusive_time_negative_by_weights) {
  const auto rows = run({enter(0, 2), leave(1, 2), enter(9000, 1), enter(9010, 0, 100),
                         leave(9050, 0), leave(9100, 1)});
  EXPECT_EQ(rows[2].inclusive_ns, 4000u);
  EXPECT_EQ(rows[1].exclusive_ns, 0u);
}

/// A poll in a hundred is timed; `calls` between two of them, of 7 ns each in every 10.
std::vector<Event> polls(const std::vector<uint64_t>& calls, uint64_t longest_at,
                         uint64_t longest_ns) {
  std::vector<Event> events{test::event(EventKind::kMark, 0, 0)};
  uint64_t now_ns = 1000;
  for (size_t i = 0; i < calls.size(); ++i) {
    now_ns += 10 * calls[i];
    events.push_back(enter(now_ns, 0, 100));
    now_ns += i == longest_at ? longest_ns : 7;
    events.push_back(leave(now_ns, 0));
  }
  return events;
}

TEST_F(Profile, an_interrupted_poll_is_not_taken_for_a_hundred_interrupted_ones) {
  const auto rows = run(polls({100, 100, 100, 100, 100, 100}, 3, 4'000'000));
  EXPECT_EQ(rows[0].count, 600u);
  EXPECT_LE(rows[0].inclusive_ns, 4'000'000u + 2 * 1000 + 5 * 700);
  EXPECT_GE(rows[0].inclusive_ns, 4'000'000u + 5 * 700);
  EXPECT_EQ(rows[0].exclusive_ns, rows[0].inclusive_ns);
}

TEST_F(Profile, an_interrupted_first_poll_is_none_of_many_either) {
  const auto rows = run(polls({100, 100, 100}, 0, 4'000'000));
  EXPECT_EQ(rows[0].count, 300u);
  EXPECT_LE(rows[0].inclusive_ns, 4'000'000u + 2000 + 2 * 700);
  EXPECT_GE(rows[0].inclusive_ns, 4'000'000u + 2 * 700);
}

TEST_F(Profile, exclusive_time_of_polls_is_bounded_as_their_inclusive_time) {
  std::vector<Event> events = polls({100, 100, 100}, 1, 4'000'000);
  for (size_t leave_at = 2; leave_at < events.size(); leave_at += 4) {
    const uint64_t now_ns = events[leave_at].time_ns;
    events.insert(events.begin() + static_cast<ptrdiff_t>(leave_at),
                  {enter(now_ns - 1, 1), leave(now_ns, 1)});
  }
  const auto rows = run(events);
  EXPECT_LE(rows[1].inclusive_ns, 4'000'000u + 2 * 1000 + 2 * 700);
  EXPECT_LE(rows[1].exclusive_ns, rows[1].inclusive_ns);
  EXPECT_GE(rows[1].exclusive_ns, 4'000'000u);
}

TEST_F(Profile, timed_polls_that_come_at_uneven_distances_keep_their_weights) {
  const auto rows = run(polls({62, 62, 138, 62, 138, 138, 62, 138, 62, 138}, 99, 0));
  EXPECT_EQ(rows[0].inclusive_ns, 10u * 700);
}

TEST_F(Profile, takes_exact_counts_where_calls_were_counted) {
  process_.counts[{1, 0}] = 17;  // weights say 16
  process_.counts[{1, 3}] = 5;   // counted only
  process_.counts[{2, 0}] = 99;  // another thread
  use_process();
  const auto rows = run({enter(0, 0, 8), leave(1, 0), enter(2, 0, 8), leave(3, 0)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].region, 7u);
  EXPECT_EQ(rows[0].count, 5u);
  EXPECT_EQ(rows[0].timed_count, 0u);
  EXPECT_EQ(rows[1].count, 17u);
  EXPECT_EQ(rows[1].timed_count, 2u);
}

/// What it found is recorded behind it, by a record as long as writing that takes.
TEST_F(Profile, a_poll_that_found_something_and_was_not_timed_has_no_time) {
  process_.counts[{1, 0}] = 100;
  use_process();
  const auto rows = run({enter(0, 1), leave(30, 1), enter(100'000, 0, 64), leave(100'900, 0),
                         enter(200'000, 0), leave(200'030, 0)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].timed_count, 1u) << "of a site that does not count";
  EXPECT_EQ(rows[1].count, 100u);
  EXPECT_EQ(rows[1].timed_count, 1u);
  EXPECT_EQ(rows[1].min_ns, 900u);
  EXPECT_EQ(rows[1].inclusive_ns, 64u * 900);
  EXPECT_EQ(rows[1].exclusive_ns, 64u * 900);
  EXPECT_EQ(rows[1].histogram[4], 0u);
}

TEST_F(Profile, keeps_the_larger_count_when_a_site_was_recorded_in_full_for_a_while) {
  process_.counts[{1, 0}] = 2;
  process_.budget_changes.push_back({0, 0, kModeFull, kModeCount, 0});
  use_process();
  const auto rows =
      run({enter(0, 0), leave(1, 0), enter(2, 0), leave(3, 0), enter(4, 0), leave(5, 0)});
  EXPECT_EQ(rows[0].count, 3u);
}

TEST_F(Profile, adds_bytes_to_the_call_that_moved_them) {
  Event collective = test::event(EventKind::kCollectiveEnd, 30, 0);
  collective.bytes = 5;
  collective.bytes_received = 7;
  const auto rows = run({enter(0, 0), send(1, 1, 100), leave(2, 0), enter(20, 1), collective,
                         leave(31, 1), send(40, 1, 1000)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bytes, 12u);
  EXPECT_EQ(rows[1].bytes, 100u);
}

TEST_F(Profile, closes_what_is_open_at_the_end) {
  const auto rows = run({enter(0, 0), enter(10, 1), test::event(EventKind::kMark, 50, 2)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].inclusive_ns, 40u);
  EXPECT_EQ(rows[1].inclusive_ns, 50u);
}

TEST_F(Profile, has_the_whole_time_of_what_began_in_a_hole) {
  std::vector<Event> events{enter(0, 1), enter(50, 0), leave(80, 0), leave(100, 1)};
  set_begin_in_hole(&events[1], 10);
  const auto rows = run(events);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].timed_count, 1u);
  EXPECT_EQ(rows[1].inclusive_ns, 70u);
  EXPECT_EQ(rows[1].exclusive_ns, 70u);
  EXPECT_EQ(rows[1].min_ns, 70u);
  EXPECT_EQ(rows[1].max_ns, 70u);
  EXPECT_EQ(rows[1].histogram[6], 1u);
  EXPECT_EQ(rows[0].inclusive_ns, 100u);
  EXPECT_EQ(rows[0].exclusive_ns, 30u);
}

TEST_F(Profile, times_nothing_that_a_loss_cut) {
  const auto rows = run({enter(0, 1), enter(10, 0), leave(14, 0), enter(20, 0),
                         test::event(EventKind::kCut, 50, 0), leave(50, 0), leave(100, 1)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[1].timed_count, 1u);
  EXPECT_EQ(rows[1].inclusive_ns, 4u);
  EXPECT_EQ(rows[1].exclusive_ns, 4u);
  EXPECT_EQ(rows[1].max_ns, 4u);
  EXPECT_EQ(rows[1].histogram[5], 0u);
  EXPECT_EQ(rows[0].exclusive_ns, 66u) << "it was in the other one up to the loss";
}

TEST_F(Profile, counts_a_range_where_it_ends_without_exclusive_time) {
  Event start = test::event(EventKind::kMark, 10, 0);
  start.set_value(static_cast<uint32_t>(ValueType::kRangeStart), 0);
  Event end = test::event(EventKind::kMark, 50, 0);
  end.set_value(static_cast<uint32_t>(ValueType::kRangeEnd), 40);
  const auto rows = run({start, enter(20, 1), leave(30, 1), end});
  ASSERT_EQ(rows.size(), 2u);
  const auto& range = rows[1].inclusive_ns == 40 ? rows[1] : rows[0];
  EXPECT_EQ(range.count, 1u);
  EXPECT_EQ(range.inclusive_ns, 40u);
  EXPECT_EQ(range.exclusive_ns, 0u);
}

TEST_F(Profile, ignores_leaves_without_enter_and_regions_without_definition) {
  const auto rows = run({leave(0, 0), enter(1, 77), leave(2, 77), enter(3, 4'000'000'000u),
                         leave(4, 4'000'000'000u), leave(5, 1)});
  EXPECT_TRUE(rows.empty());
}

TEST_F(Profile, starts_each_location_from_nothing) {
  run({enter(0, 0), leave(10, 0)});
  const auto rows = run({enter(0, 1), leave(10, 1)});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].region, 9u);
  EXPECT_EQ(rows[0].count, 1u);
}

TEST(ProfileHistogram, puts_durations_into_powers_of_two) {
  EXPECT_EQ(histogram_bucket(0), 0u);
  EXPECT_EQ(histogram_bucket(1), 0u);
  EXPECT_EQ(histogram_bucket(2), 1u);
  EXPECT_EQ(histogram_bucket(1023), 9u);
  EXPECT_EQ(histogram_bucket(1024), 10u);
  EXPECT_EQ(histogram_bucket(~0ull), kHistogramBuckets - 1);
}

TEST(ProfileCounts, finds_threads_that_only_counted) {
  Model model = test::make_model(1);
  spool::Process process{};
  process.counts[{1, 0}] = 3;
  process.counts[{4, 1}] = 9;
  model.groups[0].process = &process;
  const auto counts = uncovered_counts(model);
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].slot, 4u);
  EXPECT_EQ(counts[0].statistics.region, 9u);
  EXPECT_EQ(counts[0].statistics.count, 9u);
}

}  // namespace
}  // namespace aon::writers::profile
