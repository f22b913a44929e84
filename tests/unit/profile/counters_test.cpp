#include "writers/profile/counters.h"

#include <gtest/gtest.h>

#include "tests/unit/profile/one_rank.h"

namespace aon::writers::profile {
namespace {

using test::enter;
using test::leave;

Event values(uint64_t time_ns, uint64_t first, uint64_t second, bool is_exact = true) {
  Event e = test::event(EventKind::kCounters, time_ns, 0);
  const uint64_t all[kMaxRegionCounters] = {first, second};
  e.set_counters(all, 2, is_exact);
  return e;
}

class CounterSums : public testing::Test {
 protected:
  CounterSums() : model_(test::make_model(1)) {
    model_.metrics.resize(2);
    model_.groups[0].metric_map = {{kFirstCounterMetric, 0}, {kFirstCounterMetric + 1, 1}};
    counters_.begin(model_.groups[0], model_.locations[0]);
  }

  void add(std::initializer_list<Event> events) {
    for (const Event& event : events) counters_.add(event);
  }
  CounterStatistics row(uint32_t region, uint32_t metric) const {
    for (const CounterStatistics& row : counters_.end()) {
      if (row.region == region && row.metric == metric) return row;
    }
    return {};
  }

  Model model_;
  LocationCounters counters_;
};

TEST_F(CounterSums, are_what_each_call_added) {
  add({values(1, 100, 7), enter(1, 0), values(2, 130, 8), leave(2, 0)});
  add({values(3, 150, 9), enter(3, 0), values(4, 155, 9), leave(4, 0)});
  EXPECT_EQ(row(10, 0).count, 2u);
  EXPECT_EQ(row(10, 0).inclusive, 35u);
  EXPECT_EQ(row(10, 0).exclusive, 35u);
  EXPECT_EQ(row(10, 1).inclusive, 1u);
  EXPECT_EQ(row(kOutsideCalls, 0).inclusive, 120u);
  EXPECT_EQ(row(kOutsideCalls, 0).count, 2u);
}

TEST_F(CounterSums, of_a_call_inside_another_are_not_its_own) {
  add({values(1, 100, 0), enter(1, 0), values(2, 110, 0), enter(2, 1)});
  add({values(3, 150, 0), leave(3, 1), values(4, 155, 0), leave(4, 0)});
  EXPECT_EQ(row(10, 0).inclusive, 55u);
  EXPECT_EQ(row(10, 0).exclusive, 15u);
  EXPECT_EQ(row(9, 0).inclusive, 40u);
  EXPECT_EQ(row(kOutsideCalls, 0).inclusive, 100u);
}

TEST_F(CounterSums, pass_through_a_region_that_has_none) {
  add({values(1, 100, 0), enter(1, 0), enter(2, 1), values(3, 110, 0), enter(3, 2)});
  add({values(4, 150, 0), leave(4, 2), leave(5, 1), values(6, 155, 0), leave(6, 0)});
  EXPECT_EQ(row(10, 0).exclusive, 15u);
  EXPECT_EQ(row(9, 0).count, 0u);
}

TEST_F(CounterSums, lack_calls_that_were_off_the_pmu_and_count_them) {
  add({values(1, 100, 7, false), enter(1, 0, 4), values(2, 130, 8, false), leave(2, 0)});
  EXPECT_EQ(row(10, 0).count, 0u);
  EXPECT_EQ(row(10, 0).inexact_count, 4u);
  EXPECT_EQ(row(10, 0).inclusive, 0u);
}

TEST_F(CounterSums, of_a_sampled_call_stand_for_its_weight) {
  add({values(1, 100, 7), enter(1, 0, 8), values(2, 130, 8), leave(2, 0)});
  EXPECT_EQ(row(10, 0).count, 8u);
  EXPECT_EQ(row(10, 0).inclusive, 240u);
}

TEST_F(CounterSums, of_what_a_sampled_call_stands_for_are_not_those_of_the_region_around_it) {
  add({values(1, 100, 0), enter(1, 0), values(2, 110, 0), enter(2, 1, 8)});
  add({values(3, 120, 0), leave(3, 1), values(4, 200, 0), leave(4, 0)});
  EXPECT_EQ(row(9, 0).exclusive, 80u);
  EXPECT_EQ(row(10, 0).inclusive, 100u);
  EXPECT_EQ(row(10, 0).exclusive, 20u);
}

TEST_F(CounterSums, lack_polls_that_were_not_timed) {
  spool::Process process{};
  process.counts[{1, 0}] = 8;
  model_.groups[0].process = &process;
  counters_.begin(model_.groups[0], model_.locations[0]);
  add({values(1, 100, 7), enter(1, 0, 8), values(2, 130, 8), leave(2, 0)});
  add({values(3, 150, 9), enter(3, 0), values(4, 151, 9), leave(4, 0)});
  EXPECT_EQ(row(10, 0).count, 8u);
  EXPECT_EQ(row(10, 0).inclusive, 240u);
  EXPECT_EQ(row(kOutsideCalls, 0).inclusive, 120u);
}

TEST_F(CounterSums, of_a_recursive_region_count_once) {
  add({values(1, 100, 0), enter(1, 0), values(2, 110, 0), enter(2, 1)});
  add({values(3, 120, 0), enter(3, 0), values(4, 150, 0), leave(4, 0)});
  add({values(5, 160, 0), leave(5, 1), values(6, 200, 0), leave(6, 0)});
  EXPECT_EQ(row(10, 0).count, 2u);
  EXPECT_EQ(row(10, 0).inclusive, 100u);
  EXPECT_EQ(row(10, 0).exclusive, 80u);
  EXPECT_EQ(row(9, 0).inclusive, 50u);
}

TEST_F(CounterSums, are_none_without_counters) {
  model_.groups[0].metric_map.clear();
  counters_.begin(model_.groups[0], model_.locations[0]);
  add({enter(1, 0), leave(2, 0)});
  EXPECT_TRUE(counters_.end().empty());
}

}  // namespace
}  // namespace aon::writers::profile
