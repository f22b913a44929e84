#include "core/agent/budget.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace aon::agent {
namespace {

constexpr double kSecond = 1e9;

/// Runs `seconds` steps of a constant cost and applies the changes to `sites`.
std::vector<ModeChange> run(Budget& budget, double cost_percent, int seconds,
                            std::vector<SiteLoad>& sites) {
  std::vector<ModeChange> all;
  for (int i = 0; i < seconds; ++i) {
    const IntervalCost cost{1, cost_percent / 100 * kSecond, 0, kSecond};
    for (const ModeChange& change : budget.step(cost, sites)) {
      all.push_back(change);
      for (SiteLoad& site : sites) {
        if (site.process == change.process && site.site == change.site) site.mode = change.new_mode;
      }
    }
  }
  return all;
}

/// The same, where all but `fixed_percent` is of the sites: each costs as much as its mode says.
std::vector<ModeChange> run_sites(Budget& budget, double fixed_percent, int seconds,
                                  std::vector<SiteLoad>& sites) {
  std::vector<ModeChange> all;
  std::vector<double> full_costs;
  const auto period = [](const SiteLoad& site) { return site.mode - kModeSample + 1; };
  for (const SiteLoad& site : sites) full_costs.push_back(site.cost_per_second * period(site));
  for (int i = 0; i < seconds; ++i) {
    double sum = 0;
    for (size_t s = 0; s < sites.size(); ++s) {
      const bool is_off = sites[s].mode == static_cast<uint32_t>(kModeCount);
      sites[s].cost_per_second = is_off ? 0 : full_costs[s] / period(sites[s]);
      sum += sites[s].cost_per_second;
    }
    for (const ModeChange& change : run(budget, fixed_percent + sum / kSecond * 100, 1, sites))
      all.push_back(change);
  }
  return all;
}

TEST(Budget, doubles_the_period_of_the_dearest_sampled_site) {
  Budget budget(1);
  std::vector<SiteLoad> sites{
      {0, 1, kModeFull, 9e6}, {0, 2, kModeSample, 19e6}, {1, 3, kModeSample + 7, 20e6}};
  const auto changes = run(budget, 5, 2, sites);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes[0].process, 1u);
  EXPECT_EQ(changes[0].site, 3u);
  EXPECT_EQ(changes[0].old_mode, kModeSample + 7);
  EXPECT_EQ(changes[0].new_mode, kModeSample + 15);
}

TEST(Budget, never_touches_a_site_that_is_recorded_in_full) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeFull, 9e6}, {0, 2, kModeCount, 1}, {0, 3, kModeOff, 1}};
  EXPECT_TRUE(run(budget, 50, 100, sites).empty());
}

TEST(Budget, ends_at_counting_only) {
  EXPECT_EQ(thinner_mode(kModeSample), kModeSample + 1);
  EXPECT_EQ(thinner_mode(kModeSample + kMaxPeriod / 2 - 1), kModeSample + kMaxPeriod - 1);
  EXPECT_EQ(thinner_mode(kModeSample + kMaxPeriod - 1), static_cast<uint32_t>(kModeCount));
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 500e6}};
  run(budget, 50, 20, sites);
  EXPECT_EQ(sites[0].mode, static_cast<uint32_t>(kModeCount));
}

TEST(Budget, ends_earlier_where_a_mode_says_a_level) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 500e6, 4}};
  const auto changes = run(budget, 50, 20, sites);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].new_mode, kModeSample + 1);
  EXPECT_EQ(changes[1].new_mode, kModeSample + 3);
  EXPECT_EQ(changes[2].new_mode, static_cast<uint32_t>(kModeCount));
}

TEST(Budget, leaves_a_cost_within_the_budget_alone) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  EXPECT_TRUE(run(budget, 0.99, 200, sites).empty());
  EXPECT_NEAR(budget.percent(), 0.99, 0.01);
}

TEST(Budget, leaves_a_second_above_it_alone_where_little_was_spent) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  EXPECT_TRUE(run(budget, 0.5, 60, sites).empty());
  EXPECT_TRUE(run(budget, 1.15, 5, sites).empty());
}

TEST(Budget, is_not_passed_by_little_for_long) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  EXPECT_FALSE(run(budget, 1.05, 5, sites).empty());
}

TEST(Budget, what_the_start_cost_too_much_is_paid_back) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 50e6}};
  run(budget, 5, 1, sites);
  const uint32_t thinned = sites[0].mode;
  run(budget, 0.9, 4, sites);
  EXPECT_GT(sites[0].mode, thinned) << "9 % of a second's CPU time in 5 s";
  const uint32_t paying = sites[0].mode;
  run(budget, 0.7, 15, sites);
  EXPECT_EQ(sites[0].mode, paying) << "it goes down by itself";
  EXPECT_TRUE(run(budget, 0.95, 20, sites).empty()) << "it is paid back";
}

TEST(Budget, takes_nothing_back_before_it_is_paid_back) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 600e6}};
  run(budget, 60, 1, sites);
  sites[0].cost_per_second = 1e6;
  run(budget, 0.1, 10, sites);  // until the average has gone down
  EXPECT_TRUE(run(budget, 0.1, 50, sites).empty()) << "59 % of a second's CPU time";
  EXPECT_FALSE(run(budget, 0.1, 30, sites).empty());
}

TEST(Budget, a_start_that_could_not_be_cheaper_is_no_debt) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  run(budget, 60, 1, sites);
  EXPECT_EQ(sites[0].mode, static_cast<uint32_t>(kModeSample)) << "it is not what costs";
  run(budget, 1.9, 5, sites);
  EXPECT_NE(sites[0].mode, static_cast<uint32_t>(kModeSample)) << "half of it is";
  sites[0].cost_per_second = 1e5;
  run(budget, 0.1, 60, sites);
  EXPECT_EQ(sites[0].mode, static_cast<uint32_t>(kModeSample));
}

TEST(Budget, lowers_nothing_that_is_not_what_costs) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, kFirstProviderSite, kModeSample, 2e6, 32}};
  EXPECT_TRUE(run_sites(budget, 3, 100, sites).empty()) << "0.2 of 3.2 %";
}

TEST(Budget, a_kind_below_a_tenth_of_the_budget_stays) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, kFirstProviderSite, kModeSample, 0.9e6},
                              {0, 1, kModeSample, 100e6}};
  run_sites(budget, 0.9, 60, sites);
  EXPECT_EQ(sites[0].mode, static_cast<uint32_t>(kModeSample));
  EXPECT_GT(sites[1].mode, static_cast<uint32_t>(kModeSample) + 14);
}

/// Each process's part is small, all together are not.
TEST(Budget, sites_of_one_kind_count_together) {
  Budget budget(1);
  std::vector<SiteLoad> sites;
  for (uint32_t process = 0; process < 64; ++process)
    sites.push_back({process, 1 + process % 3, kModeSample, 0.9e6});
  run_sites(budget, 0.5, 300, sites);
  EXPECT_LT(budget.percent(), 1.2);
}

TEST(Budget, what_can_be_lowered_ends_within_the_budget_whatever_else_costs) {
  for (const double fixed_percent : {0.0, 0.5, 1.0, 5.0, 50.0}) {
    Budget budget(1);
    std::vector<SiteLoad> sites{{0, kFirstProviderSite, kModeSample, 30e6, 32},
                                {0, 1, kModeSample, 200e6},
                                {1, 2, kModeSample, 50e6}};
    run_sites(budget, fixed_percent, 100, sites);
    double left = 0;
    for (const SiteLoad& site : sites) left += site.cost_per_second;
    EXPECT_LE(left, 10e6) << fixed_percent;
    EXPECT_LE(budget.percent(), std::max(1.2, fixed_percent + 1.01)) << fixed_percent;
  }
}

TEST(Budget, takes_back_what_fits_into_the_budget) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, kFirstProviderSite, kModeSample, 2e6, 32}};
  run_sites(budget, 1.1, 5, sites);
  ASSERT_NE(sites[0].mode, static_cast<uint32_t>(kModeSample));
  run_sites(budget, 0.6, 60, sites);
  EXPECT_EQ(sites[0].mode, static_cast<uint32_t>(kModeSample)) << "0.8 %";
}

TEST(Budget, takes_the_last_change_back_after_ten_quiet_seconds) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  ASSERT_FALSE(run(budget, 3, 1, sites).empty());
  const uint32_t thinned = sites[0].mode;
  EXPECT_TRUE(run(budget, 0.1, 9, sites).empty());
  const auto changes = run(budget, 0.1, 8, sites);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].old_mode, thinned);
  EXPECT_EQ(changes[0].new_mode, static_cast<uint32_t>(kModeSample));
}

TEST(Budget, waits_twice_as_long_after_a_relapse) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  run(budget, 3, 1, sites);
  ASSERT_EQ(run(budget, 0.1, 20, sites).size(), 1u);
  ASSERT_FALSE(run(budget, 3, 1, sites).empty());
  EXPECT_TRUE(run(budget, 0.1, 19, sites).empty()) << "10 s are not enough any more";
  EXPECT_FALSE(run(budget, 0.1, 10, sites).empty());
}

TEST(Budget, says_nothing_while_no_rank_runs) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 1, kModeSample, 9e6}};
  EXPECT_TRUE(budget.step({1, 1e9, 1e9, 0}, sites).empty());
  EXPECT_TRUE(budget.step({0, 1e9, 1e9, 1e9}, sites).empty());
}

TEST(Budget, forgets_a_process_that_ended) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{7, 1, kModeSample, 9e6}};
  run(budget, 3, 1, sites);
  budget.forget(7);
  EXPECT_TRUE(run(budget, 0.1, 100, sites).empty());
}

/// The user has given the site another mode: what the budget did to it is no more to be taken back.
TEST(Budget, forgets_a_site_that_somebody_else_has_set) {
  Budget budget(1);
  std::vector<SiteLoad> sites{{0, 2, kModeSample, 60e6}};
  ASSERT_FALSE(run(budget, 5, 2, sites).empty());
  const uint32_t lowered = sites[0].mode;
  budget.forget(0, 2);
  sites[0].cost_per_second = 0;
  EXPECT_TRUE(run(budget, 0, 2000, sites).empty());
  EXPECT_EQ(sites[0].mode, lowered);
}

}  // namespace
}  // namespace aon::agent
