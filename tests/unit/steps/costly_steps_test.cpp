#include "writers/steps/costly_steps.h"

#include <gtest/gtest.h>

namespace aon::writers {
namespace {

constexpr uint64_t kMs = 1'000'000;

std::vector<StepCost> costs_of(int64_t count, int64_t first, int64_t last, uint64_t much,
                               uint64_t little) {
  std::vector<StepCost> costs;
  for (int64_t i = 0; i < count; ++i) costs.push_back({i, i >= first && i <= last ? much : little});
  return costs;
}

TEST(CostlySteps, are_those_with_nearly_all_of_the_cost) {
  const auto found = find_costly_steps(costs_of(1000, 120, 340, kMs, 0), false);
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->first), 120, 23);
  EXPECT_NEAR(static_cast<double>(found->last), 340, 23);
  EXPECT_GE(found->first, 120);
  EXPECT_LE(found->last, 340);
  EXPECT_GE(found->cost_ns, 0.9 * 221 * kMs);
}

TEST(CostlySteps, are_found_in_noise) {
  const auto found = find_costly_steps(costs_of(1000, 120, 340, 20 * kMs, kMs / 10), false);
  ASSERT_TRUE(found);
  EXPECT_GE(found->first, 120);
  EXPECT_LE(found->last, 340);
}

TEST(CostlySteps, are_not_named_where_it_is_all_along) {
  EXPECT_FALSE(find_costly_steps(costs_of(1000, 0, 999, kMs, 0), false));
  EXPECT_FALSE(find_costly_steps(costs_of(1000, 100, 990, kMs, 0), false));
}

TEST(CostlySteps, are_not_named_where_they_are_at_both_ends) {
  std::vector<StepCost> costs = costs_of(1000, 0, 99, kMs, 0);
  for (size_t i = 900; i < 1000; ++i) costs[i].cost_ns = kMs;
  EXPECT_FALSE(find_costly_steps(costs, false));
}

TEST(CostlySteps, may_be_one) {
  const auto found = find_costly_steps(costs_of(100, 17, 17, 5000 * kMs, 1), false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 17);
  EXPECT_EQ(found->last, 17);
}

TEST(CostlySteps, are_none_without_cost_or_steps) {
  EXPECT_FALSE(find_costly_steps(costs_of(100, 0, 0, 0, 0), false));
  EXPECT_FALSE(find_costly_steps({}, false));
}

TEST(CostlySteps, are_not_named_of_a_few) {
  EXPECT_FALSE(find_costly_steps(costs_of(15, 2, 8, kMs, 0), false));
  EXPECT_TRUE(find_costly_steps(costs_of(16, 2, 8, kMs, 0), false));
}

TEST(CostlySteps, missing_numbers_are_those_of_no_step) {
  std::vector<StepCost> costs;  // 1 us in the last one before a gap
  for (int64_t i = 0; i < 100; ++i) costs.push_back({i, i == 99 ? kMs / 1000 : 0});
  for (int64_t i = 5000; i < 5100; ++i) costs.push_back({i, i < 5041 ? kMs : 0});
  const auto found = find_costly_steps(costs, false);
  ASSERT_TRUE(found);
  EXPECT_GE(found->first, 5000);
  EXPECT_LT(found->last, 5041);
}

TEST(CostlySteps, that_were_kept_stand_for_those_that_were_not) {
  std::vector<StepCost> costs;  // the first and last ones densely, between them every tenth
  for (int64_t i = 0; i < 100; ++i) costs.push_back({i, kMs});
  for (int64_t i = 100; i < 900; i += 10) costs.push_back({i, kMs});
  for (int64_t i = 900; i < 1000; ++i) costs.push_back({i, kMs});
  EXPECT_FALSE(find_costly_steps(costs, true)) << "it is all along";
}

/// Two processes with `count` steps each; the second one computes longer in some.
StepSummary two_processes(int64_t count, int64_t first, int64_t last) {
  StepSummary summary;
  summary.loops.resize(1);
  summary.loops[0].name = "train";
  for (uint32_t group = 0; group < 2; ++group) {
    for (int64_t i = 0; i < count; ++i) {
      StepRow row{};
      row.group = group;
      row.number = i;
      const bool is_slow = group == 1 && i >= first && i <= last;
      row.part_ns[static_cast<size_t>(StepPart::kCompute)] = is_slow ? 3 * kMs : kMs;
      summary.rows.push_back(row);
    }
  }
  return summary;
}

TEST(ComputedLonger, is_beyond_the_faster_one_of_two) {
  const StepSummary summary = two_processes(10, 4, 6);
  const std::vector<StepCost> costs = computed_longer(summary, 0, 1);
  ASSERT_EQ(costs.size(), 10u);
  for (const StepCost& cost : costs)
    EXPECT_EQ(cost.cost_ns, cost.number >= 4 && cost.number <= 6 ? 2 * kMs : 0) << cost.number;
  for (const StepCost& cost : computed_longer(summary, 0, 0)) EXPECT_EQ(cost.cost_ns, 0u);
}

TEST(ComputedLonger, is_not_known_where_numbers_are_missing_or_come_twice) {
  StepSummary summary = two_processes(10, 4, 6);
  summary.rows.back().number = 3;
  EXPECT_TRUE(computed_longer(summary, 0, 1).empty());
  EXPECT_EQ(computed_longer(summary, 0, 0).size(), 10u);
  summary.rows.front().number = -1;
  EXPECT_TRUE(computed_longer(summary, 0, 0).empty());
}

TEST(ToldCosts, are_those_of_the_process_and_loop) {
  StepSummary summary = two_processes(3, 0, 0);
  EXPECT_EQ(told_costs(summary, std::vector<uint64_t>{1, 2, 3, 4, 5, 6}, 0, 1)[2].cost_ns, 6u);
  EXPECT_TRUE(told_costs(summary, std::vector<uint64_t>{1, 2, 3, 4, 5, 6}, 1, 1).empty());
}

TEST(CostlyText, names_the_loop_where_there_are_several) {
  StepSummary summary = two_processes(3, 0, 0);
  EXPECT_EQ(costly_text({120, 340, 0}, summary, 0), "in steps 120 to 340");
  EXPECT_EQ(costly_text({7, 7, 0}, summary, 0), "in step 7");
  summary.loops.emplace_back();
  EXPECT_EQ(costly_text({7, 7, 0}, summary, 0), "in step 7 of train");
}

}  // namespace
}  // namespace aon::writers
