#include "core/spool/nccl_levels.h"

#include <gtest/gtest.h>

#include "core/spool/text.h"

namespace aon::spool {
namespace {

constexpr uint32_t kStamp = 7;

BudgetDefinition answer(NcclLevel before, NcclLevel level, NcclLevel asked,
                        NcclLimit reason = NcclLimit::kNone, uint32_t stamp = kStamp) {
  return {1, kNcclAskedSite, NcclAnswer{before, level, asked, reason}.word(), stamp, 0};
}

BudgetDefinition lowered(NcclLevel from, NcclLevel to) {
  return {1, kNcclProxySite, nccl_mode_of(from, false), nccl_mode_of(to, false), 0};
}

BudgetDefinition stands(NcclLevel level, uint32_t stamp) {
  return answer(level, level, NcclLevel::kOff, NcclLimit::kNone, stamp);
}

TEST(NcclLevels, are_unknown_of_a_process_without_nccl) {
  Process process;
  process.budget_changes.push_back({1, 3, kModeSample, kModeCount, 0});
  EXPECT_FALSE(nccl_standing(process).has_value());
}

TEST(NcclLevels, follow_the_wish_and_the_budget) {
  Process process;
  process.budget_changes.push_back(stands(NcclLevel::kApi, 0));
  EXPECT_EQ(nccl_standing(process)->level, NcclLevel::kApi);
  process.budget_changes.push_back(answer(NcclLevel::kApi, NcclLevel::kStep, NcclLevel::kStep));
  EXPECT_EQ(nccl_standing(process)->level, NcclLevel::kStep);
  EXPECT_FALSE(nccl_standing(process)->is_by_budget);
  process.budget_changes.push_back(lowered(NcclLevel::kStep, NcclLevel::kNet));
  const auto standing = nccl_standing(process);
  EXPECT_EQ(standing->level, NcclLevel::kNet);
  EXPECT_TRUE(standing->is_by_budget);
  EXPECT_EQ(standing->answer.level, NcclLevel::kStep);
  EXPECT_EQ(standing->stamp, kStamp);
}

TEST(NcclLevels, keep_their_reason_when_a_new_agent_tells_them_again) {
  Process process;
  process.budget_changes.push_back(
      answer(NcclLevel::kApi, NcclLevel::kApi, NcclLevel::kNet, NcclLimit::kSmallShm));
  process.budget_changes.push_back(stands(NcclLevel::kApi, kStamp));
  EXPECT_EQ(nccl_standing(process)->answer.reason, NcclLimit::kSmallShm);
  process.budget_changes.push_back(stands(NcclLevel::kGpu, kStamp));  // which it did not see
  EXPECT_EQ(nccl_standing(process)->level, NcclLevel::kGpu);
  EXPECT_EQ(nccl_standing(process)->answer.reason, NcclLimit::kNone);
}

TEST(NcclLevels, limits_survive_their_word) {
  const NcclLimits limits{NcclLevel::kGpu, NcclLevel::kStep, NcclLevel::kNet,
                          NcclLimit::kFixedChannels};
  NcclLimits read;
  ASSERT_TRUE(read_nccl_limits(limits.word(), &read));
  EXPECT_EQ(read.word(), limits.word());
  EXPECT_EQ(read.site(), kNcclFixedSite);
  EXPECT_EQ(read.clamp(NcclLevel::kApi), NcclLevel::kGpu);
  EXPECT_EQ(read.clamp(NcclLevel::kStep), NcclLevel::kStep);
}

/// Any process may write any word.
TEST(NcclLevels, limits_of_any_word_are_levels_or_none) {
  NcclLimits limits;
  EXPECT_FALSE(read_nccl_limits(kModeUndefined, &limits));
  EXPECT_FALSE(read_nccl_limits(UINT32_MAX, &limits));
  for (uint32_t word = 0; word < 1u << 16; ++word) {
    if (!read_nccl_limits(word, &limits)) continue;
    EXPECT_GE(limits.lowest, NcclLevel::kApi);
    EXPECT_LE(limits.highest, NcclLevel::kStep);
    EXPECT_LE(limits.lowest, limits.highest);
    EXPECT_EQ(limits.word(), word);
  }
}

TEST(NcclLevels, names_of_any_answer_are_texts) {
  const NcclAnswer answer = NcclAnswer::of(UINT32_MAX);
  EXPECT_STREQ(nccl_level_name(answer.level), "unknown");
  EXPECT_STREQ(nccl_limit_text(answer.reason), "");
}

TEST(NcclLevels, any_mode_is_a_level) {
  for (const bool keeps_channels : {false, true}) {
    const NcclLevel lowest = keeps_channels ? NcclLevel::kGpu : NcclLevel::kApi;
    for (const uint32_t mode : {0u, 1u, 3u, 15u, 18u, 4096u, uint32_t{kModeOff}, UINT32_MAX})
      EXPECT_EQ(nccl_level_of(mode, keeps_channels), lowest) << mode;
  }
}

TEST(Text, lists_ranks) {
  EXPECT_EQ(listed_ranks({}), "");
  EXPECT_EQ(listed_ranks({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(listed_ranks({1, 3}), "1,3");
}

}  // namespace
}  // namespace aon::spool
