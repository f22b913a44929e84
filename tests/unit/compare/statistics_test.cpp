#include "tools/compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace aon::tools::compare {
namespace {

/// As tables of the distribution have it.
TEST(StudentT, is_as_in_tables) {
  EXPECT_NEAR(student_t(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t(0.05, 2), 4.3027, 1e-4);
  EXPECT_NEAR(student_t(0.05, 10), 2.2281, 1e-4);
  EXPECT_NEAR(student_t(0.05, 19), 2.0930, 1e-4);
  EXPECT_NEAR(student_t(0.01, 5), 4.0321, 1e-4);
  EXPECT_NEAR(student_t(0.001, 30), 3.6460, 1e-4);
  EXPECT_NEAR(student_t(0.05, 1e6), 1.9600, 1e-4);
}

TEST(StudentT, is_wide_for_many_rows_of_few_runs) {
  EXPECT_NEAR(student_t(0.05 / 100, 2), 44.7046, 1e-3);
}

TEST(Estimate, of_values_is_mean_and_variance_of_the_mean) {
  const Estimate of = of_values(std::vector<double>{1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(of.mean, 2.5);
  EXPECT_DOUBLE_EQ(of.variance, 5.0 / 3 / 4);
  EXPECT_DOUBLE_EQ(of.freedom, 3);
}

TEST(Estimate, of_one_value_and_of_few_steps_has_no_uncertainty_that_is_known) {
  EXPECT_EQ(of_values(std::vector<double>{7}).freedom, 0);
  const Estimate few = of_series(std::vector<double>(kLeastSteps - 1, 3.0));
  EXPECT_EQ(few.mean, 3.0);
  EXPECT_EQ(few.freedom, 0);
  EXPECT_EQ(of_series({}).mean, 0);
}

/// Steps that are like their neighbours say less than as many independent ones.
TEST(Estimate, of_a_series_that_drifts_slowly_is_wider_than_its_steps_are) {
  std::vector<double> slow;
  for (int i = 0; i < 2000; ++i) slow.push_back(10 + std::sin(i / 100.0));
  EXPECT_GT(of_series(slow).variance, 10 * of_values(slow).variance);
}

TEST(Estimate, of_several_is_their_mean) {
  const std::vector<Estimate> two = {{1, 0.04, 19}, {3, 0.04, 19}};
  const Estimate of = mean_of(two);
  EXPECT_DOUBLE_EQ(of.mean, 2);
  EXPECT_DOUBLE_EQ(of.variance, 0.02);
  EXPECT_NEAR(of.freedom, 38, 1e-9);
  EXPECT_EQ(mean_of(std::vector<Estimate>{{1, 0.04, 19}, {3, 0, 0}}).freedom, 0);
}

/// B. L. Welch's interval of two samples, by hand: variances 2.5 and 10, five values each.
TEST(Change, has_the_interval_of_welch) {
  const Estimate base = of_values(std::vector<double>{1, 2, 3, 4, 5});
  const Estimate now = of_values(std::vector<double>{2, 4, 6, 8, 10});
  const Change change = change_between(base, now, 0.05);
  ASSERT_TRUE(change.difference);
  const double freedom = 2.5 * 2.5 / (0.5 * 0.5 / 4 + 2.0 * 2.0 / 4);
  const double reach = student_t(0.05, freedom) * std::sqrt(2.5);
  EXPECT_NEAR(change.difference->low, 3 - reach, 1e-9);
  EXPECT_NEAR(change.difference->high, 3 + reach, 1e-9);
}

TEST(Change, of_what_never_varies_is_exact) {
  const Change change = change_between({2, 0, 19}, {3, 0, 19}, 0.05);
  ASSERT_TRUE(change.ratio);
  EXPECT_DOUBLE_EQ(change.ratio->low, 1.5);
  EXPECT_DOUBLE_EQ(change.ratio->high, 1.5);
}

TEST(Change, of_nothing_has_no_ratio) {
  const Change change = change_between({0, 0, 19}, {3, 0.1, 19}, 0.05);
  EXPECT_FALSE(change.ratio);
  ASSERT_TRUE(change.difference);
  EXPECT_GT(change.difference->low, 0);
}

TEST(Change, without_an_uncertainty_has_no_interval) {
  EXPECT_FALSE(change_between({2, 0, 0}, {3, 0.1, 19}, 0.05).difference);
}

TEST(Change, of_few_runs_and_many_rows_may_be_anything) {
  const Change change = change_between({2, 1, 1}, {3, 1, 1}, 1e-6);
  EXPECT_FALSE(change.ratio);
}

/// Pairs of runs that are alike, steps that hang on the one before by `alike`: how many intervals
/// of 1000 do not hold 1.
int missed_of_1000(int steps, double alike) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 1);
  const auto run = [&] {
    std::vector<double> values;
    double drift = 0;
    for (int i = -100; i < steps; ++i) {
      drift = alike * drift + noise(random);
      if (i >= 0) values.push_back(100 + drift);
    }
    return of_series(values);
  };
  int missed = 0;
  for (int i = 0; i < 1000; ++i) {
    const Change change = change_between(run(), run(), 0.05);
    missed += change.ratio->holds(1) ? 0 : 1;
  }
  return missed;
}

TEST(Change, misses_as_often_as_it_says) {
  EXPECT_GT(missed_of_1000(1000, 0), 20);
  EXPECT_LT(missed_of_1000(1000, 0), 80);
  EXPECT_LT(missed_of_1000(1000, 0.8), 80);
  EXPECT_LT(missed_of_1000(180, 0.8), 80);
  EXPECT_LT(missed_of_1000(54, 0.8), 90);
}

/// One run against five that differ from run to run: as wide as a prediction.
TEST(Change, of_one_run_against_several_is_a_prediction) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(100, 1);
  int missed = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> base;
    for (int run = 0; run < 5; ++run) base.push_back(noise(random));
    const Change change =
        change_between(of_values(base), like_others(noise(random), base), 0.05, 4.0);
    missed += change.ratio->holds(1) ? 0 : 1;
  }
  EXPECT_GT(missed, 20);
  EXPECT_LT(missed, 80);
}

}  // namespace
}  // namespace aon::tools::compare
