#include "plugins/cupti/watchdog.h"

#include <gtest/gtest.h>

#include <string>

namespace aon::cupti {
namespace {

constexpr uint64_t kHalfNs = 500'000'000;

/// Half a second with so many records of 250 ns: 20000 are 1 %.
Usage records(uint64_t count) { return {kHalfNs, 1, count * 250, 0, 0, 0}; }
/// The same; without calls they would cost a tenth.
Usage mostly_calls(uint64_t count) { return {kHalfNs, 1, count * 250, 0, 0, 0, count * 225}; }
constexpr uint64_t kFew = 1'000;
constexpr uint64_t kMany = 100'000;

/// One whose intervals all come in time; the first is number 0 of its period.
class Dog : public Watchdog {
 public:
  using Watchdog::Watchdog;
  bool step(Usage usage) {
    usage.next_interval = ++interval_ % kWindowPeriod;
    return Watchdog::step(usage);
  }

 private:
  uint32_t interval_ = 0;
};

/// Steps until the detail changes; how many it took, 0: more than `limit`.
int steps_to_change(Dog* dog, const Usage& usage, int limit = 10'000) {
  for (int i = 1; i <= limit; ++i) {
    if (dog->step(usage)) return i;
  }
  return 0;
}

TEST(Watchdog, leaves_alone_what_is_cheap) {
  Dog dog(1);
  EXPECT_EQ(steps_to_change(&dog, records(20'000), 1000), 0);
  EXPECT_EQ(dog.detail(), Detail::kFull);
  EXPECT_TRUE(dog.is_recording());
  EXPECT_DOUBLE_EQ(dog.percent(), 1);
}

TEST(Watchdog, one_dear_interval_is_chance) {
  Dog dog(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(dog.step(records(kMany)));
    EXPECT_FALSE(dog.step(records(kFew)));
  }
}

TEST(Watchdog, two_in_a_row_lower_the_detail_step_by_step) {
  Dog dog(1);
  EXPECT_EQ(steps_to_change(&dog, mostly_calls(kMany)), 2);
  EXPECT_EQ(dog.detail(), Detail::kNoCalls);
  EXPECT_EQ(steps_to_change(&dog, records(kMany)), 2);
  EXPECT_EQ(dog.detail(), Detail::kWindows);
  EXPECT_EQ(steps_to_change(&dog, records(kFew)), 4 + 64);  // to the first window, whole periods
  EXPECT_EQ(dog.detail(), Detail::kNoCalls);
}

TEST(Watchdog, leaves_no_calls_out_where_that_is_not_enough) {
  Dog dog(1);
  Usage usage = records(kMany);  // 5 %
  usage.spared_ns = 19'000'000;  // 3.8 %
  EXPECT_EQ(steps_to_change(&dog, usage), 2);
  EXPECT_EQ(dog.detail(), Detail::kWindows);
  EXPECT_EQ(steps_to_change(&dog, records(kFew)), 6 + 64);
  EXPECT_EQ(dog.detail(), Detail::kFull) << "where it came from";
  usage.spared_ns = 20'000'000;  // 4 %
  EXPECT_EQ(steps_to_change(&dog, usage), 2);
  EXPECT_EQ(dog.detail(), Detail::kNoCalls);
}

TEST(Watchdog, knows_behind_windows_that_were_too_dear_where_it_came_from) {
  Dog dog(1);
  steps_to_change(&dog, records(kMany));
  steps_to_change(&dog, records(1'000'000));
  ASSERT_EQ(dog.detail(), Detail::kOff);
  steps_to_change(&dog, records(0));
  ASSERT_EQ(dog.detail(), Detail::kWindows);
  steps_to_change(&dog, records(kFew));
  EXPECT_EQ(dog.detail(), Detail::kFull);
}

TEST(Watchdog, all_that_cupti_uses_counts) {
  constexpr uint64_t kCostNs = 10'000'000;  // 2 %
  for (const Usage& usage :
       {Usage{kHalfNs, 1, 0, kCostNs, 0, 0}, Usage{kHalfNs, 1, 0, 0, kCostNs, 0},
        Usage{kHalfNs, 1, 0, 0, 0, kCostNs}}) {
    Dog dog(1);
    EXPECT_EQ(steps_to_change(&dog, usage), 2);
    EXPECT_DOUBLE_EQ(dog.percent(), 2);
  }
}

TEST(Watchdog, all_together_is_the_mean) {
  Dog dog(100);
  EXPECT_EQ(dog.mean_percent(), 0);
  dog.step({kHalfNs, 1, 15'000'000, 0, 0, 0});
  dog.step({kHalfNs, 3, 0, 0, 0, 5'000'000});
  EXPECT_DOUBLE_EQ(dog.mean_percent(), 1);
}

std::string cost_text(const Watchdog& dog, bool has_graphs = false) {
  char text[kCostTextBytes];
  write_cost(text, dog, has_graphs);
  return text;
}

TEST(Watchdog, tells_what_it_costs_and_that_it_is_an_estimate) {
  Dog dog(1);
  dog.step(records(1'000));
  EXPECT_EQ(cost_text(dog), "") << "little";
  dog.step(records(kMany));
  EXPECT_EQ(cost_text(dog),
            "CUPTI took about 2.5 % of the time of the threads that launch (an estimate by an "
            "H200: 1.4 us a launch)");
  EXPECT_NE(cost_text(dog, true).find("a graph: those of more than some ten nodes cost more"),
            std::string::npos);
}

TEST(Watchdog, tells_that_rests_have_a_cost_that_nobody_knows) {
  Dog dog(1);
  steps_to_change(&dog, records(kMany));
  ASSERT_EQ(dog.detail(), Detail::kWindows);
  EXPECT_FALSE(dog.has_rested());
  for (int i = 0; i < 1000; ++i) dog.step(records(0));
  EXPECT_LT(dog.mean_percent(), 0.1);
  const std::string text = cost_text(dog, true);
  EXPECT_NE(text.find("while nothing is recorded is not in it"), std::string::npos) << text;
  EXPECT_EQ(text.back(), ')') << "not cut";
}

TEST(Watchdog, each_thread_that_launches_has_the_budget) {
  constexpr uint64_t kCostNs = 10'000'000;  // 2 % of one
  Dog of_many_threads(1);
  EXPECT_EQ(steps_to_change(&of_many_threads, {kHalfNs, 8, 0, kCostNs, 0, 0}, 100), 0);
  EXPECT_DOUBLE_EQ(of_many_threads.percent(), 0.25);
}

TEST(Watchdog, what_no_level_spares_is_told_and_not_judged) {
  Dog dog(1);
  Usage usage = records(kMany);  // 5 %
  usage.kept_ns = 20'000'000;    // 4 %
  EXPECT_EQ(steps_to_change(&dog, usage, 100), 0);
  EXPECT_DOUBLE_EQ(dog.percent(), 1);
  EXPECT_DOUBLE_EQ(dog.mean_percent(), 5);
}

TEST(Watchdog, goes_no_further_than_a_version_can) {
  Dog dog(1, Detail::kNoCalls);
  EXPECT_EQ(steps_to_change(&dog, records(kMany)), 2);
  EXPECT_EQ(steps_to_change(&dog, records(kMany), 1000), 0);
  EXPECT_EQ(dog.detail(), Detail::kNoCalls);
  EXPECT_TRUE(dog.is_recording());
  EXPECT_EQ(steps_to_change(&dog, records(kFew)), 60);
  EXPECT_EQ(dog.detail(), Detail::kFull);
}

TEST(Watchdog, a_larger_budget_bites_later) {
  Dog dog(10);
  EXPECT_EQ(steps_to_change(&dog, records(kMany), 100), 0);
}

/// A program that always makes `count` records while it is recorded. Returns the recorded share.
double run(Dog* dog, uint64_t count, int steps) {
  int recorded = 0;
  for (int i = 0; i < steps; ++i) {
    const bool is_recording = dog->is_recording();
    recorded += is_recording ? 1 : 0;
    dog->step(records(is_recording ? count : 0));
  }
  return static_cast<double>(recorded) / steps;
}

TEST(Watchdog, windows_are_one_of_eight_intervals) {
  Dog dog(1);
  run(&dog, kMany, 2);
  ASSERT_EQ(dog.detail(), Detail::kWindows);
  EXPECT_DOUBLE_EQ(run(&dog, kMany, 800), 0.125);  // 5 % in an eighth of the time
  EXPECT_EQ(dog.detail(), Detail::kWindows);
}

TEST(Watchdog, windows_of_all_ranks_are_the_same_intervals) {
  Watchdog dogs[2] = {Watchdog(1), Watchdog(1)};
  uint32_t windows = 0;
  for (uint32_t interval = 1; interval < 80; ++interval) {
    for (Watchdog& dog : dogs) {
      if (&dog == &dogs[1] && interval < 5) continue;  // began later
      Usage usage = records(dog.is_recording() ? kMany : 0);
      usage.next_interval = interval % kWindowPeriod;
      dog.step(usage);
    }
    if (interval < 10) continue;
    ASSERT_EQ(dogs[1].detail(), Detail::kWindows);
    EXPECT_EQ(dogs[0].is_recording(), dogs[1].is_recording()) << interval;
    windows += dogs[0].is_recording() ? 1 : 0;
  }
  EXPECT_EQ(windows, 8u);
}

/// Our thread does not run in time: none of the times at which it judges is a window's.
TEST(Watchdog, a_period_whose_window_was_missed_has_one_behind_it) {
  Watchdog dog(1);
  Usage usage = records(kMany);
  for (int i = 0; i < 2; ++i) dog.step(usage);
  ASSERT_EQ(dog.detail(), Detail::kWindows);
  int windows = 0;
  for (uint32_t i = 0; i < 40; ++i) {
    usage = records(dog.is_recording() ? kMany / 2 : 0);
    usage.next_interval = 1 + 2 * i % kWindowPeriod;
    dog.step(usage);
    windows += dog.is_recording() ? 1 : 0;
  }
  EXPECT_EQ(windows, 4) << "of ten periods, the first of which began behind its window";
}

TEST(Watchdog, windows_that_are_too_dear_end_and_are_tried_again_ever_later) {
  Dog dog(1);
  constexpr uint64_t kStorm = 1'000'000;  // 50 %
  run(&dog, kStorm, 2 + 6 + 16);          // to the first window, two periods
  ASSERT_EQ(dog.detail(), Detail::kOff);
  EXPECT_FALSE(dog.is_recording());
  int waits[3];
  for (int& wait : waits) {
    wait = steps_to_change(&dog, records(0));
    ASSERT_EQ(dog.detail(), Detail::kWindows);
    for (int i = 0; i < 7 + 16 && dog.detail() == Detail::kWindows; ++i) run(&dog, kStorm, 1);
    ASSERT_EQ(dog.detail(), Detail::kOff);
  }
  EXPECT_EQ(waits[0], 60);
  EXPECT_EQ(waits[1], 120);
  EXPECT_EQ(waits[2], 240);
  EXPECT_LT(run(&dog, kStorm, 20'000), 0.02);
}

TEST(Watchdog, goes_back_after_a_long_quiet_time) {
  Dog dog(1);
  run(&dog, kMany, 2);
  ASSERT_EQ(dog.detail(), Detail::kWindows);
  EXPECT_EQ(steps_to_change(&dog, records(kFew)), 6 + 64);
  EXPECT_EQ(dog.detail(), Detail::kFull);
  EXPECT_EQ(steps_to_change(&dog, records(kFew), 1000), 0);
}

TEST(Watchdog, a_window_that_would_be_dear_without_rests_is_no_quiet_time) {
  Dog dog(1);
  run(&dog, kMany, 2);
  run(&dog, 15'000, 8'000);  // 0.75 % while it is recorded
  EXPECT_EQ(dog.detail(), Detail::kWindows);
}

}  // namespace
}  // namespace aon::cupti
