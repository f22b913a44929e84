// What NCCL is asked for, at each level and version.

#include "plugins/nccl/level.h"

#include <aon/ring.h>
#include <gtest/gtest.h>

#include <string>

namespace aon::nccl {
namespace {

constexpr uint64_t kEnough = uint64_t{1} << 30;

TEST(NcclLevel, api_is_the_default) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "api"}) {
    const LevelChoice choice = choose_level(text, 5, 0);
    EXPECT_EQ(choice.level, Level::kApi);
    EXPECT_STREQ(choice.reason, "");
  }
}

TEST(NcclLevel, masks_hold_what_a_version_has) {
  EXPECT_EQ(mask_of(Level::kApi, 5), 0xf06);
  EXPECT_EQ(mask_of(Level::kGpu, 5), 0xf46);
  EXPECT_EQ(mask_of(Level::kApi, 4), 0x06);
  EXPECT_EQ(mask_of(Level::kGpu, 4), 0x46);
  EXPECT_EQ(mask_of(Level::kApi, 1), 0x06);
  EXPECT_EQ(mask_of(Level::kApi, 6), 0x1f06);
  EXPECT_EQ(mask_of(Level::kGpu, 7), 0x1f46);
  EXPECT_EQ(mask_of(Level::kOff, 7), 0);
}

TEST(NcclLevel, gpu_is_refused_where_shared_memory_is_small) {
  const LevelChoice refused = choose_level("gpu", 5, uint64_t{64} << 20);
  EXPECT_EQ(refused.level, Level::kApi);
  EXPECT_NE(std::string(refused.reason).find("/dev/shm"), std::string::npos);
  EXPECT_NE(std::string(refused.remedy).find("--shm-size"), std::string::npos);
  EXPECT_EQ(choose_level("gpu", 5, kEnough).level, Level::kGpu);
}

TEST(NcclLevel, gpu_is_refused_by_versions_without_a_timer) {
  for (const int version : {1, 2, 3}) {
    EXPECT_EQ(choose_level("gpu", version, kEnough).level, Level::kApi);
  }
  EXPECT_EQ(choose_level("gpu", 4, kEnough).level, Level::kGpu);
}

TEST(NcclLevel, what_cannot_be_given_is_told) {
  EXPECT_STRNE(choose_level("much", 7, kEnough).reason, "");
  EXPECT_STRNE(choose_level("much", 7, kEnough).remedy, "");
  EXPECT_EQ(choose_level("off", 7, kEnough).level, Level::kOff);
}

TEST(NcclLevel, net_and_step_ask_for_what_the_proxy_does) {
  EXPECT_EQ(choose_level("net", 5, kEnough).level, Level::kNet);
  EXPECT_EQ(choose_level("step", 5, kEnough).level, Level::kStep);
  EXPECT_EQ(mask_of(Level::kNet, 5), 0xf4e);
  EXPECT_EQ(mask_of(Level::kStep, 5), 0xfde);
  EXPECT_EQ(mask_of(Level::kStep, 4), 0xde);
}

/// The words that the agent's budget makes of it, one after the other.
TEST(NcclLevel, falls_with_the_mode_word_and_rises_with_it) {
  for (const Level level : {Level::kApi, Level::kGpu, Level::kNet, Level::kStep})
    EXPECT_EQ(level_of_mode(mode_of(level), Level::kStep, 5), level);
  EXPECT_EQ(level_of_mode(kModeSample, Level::kStep, 5), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeSample + 1, Level::kStep, 5), Level::kNet);
  EXPECT_EQ(level_of_mode(kModeSample + 3, Level::kStep, 5), Level::kGpu);
  EXPECT_EQ(level_of_mode(kModeCount, Level::kStep, 5), Level::kApi);
  EXPECT_EQ(level_of_mode(kModeSample | kModePaused, Level::kStep, 5), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeUndefined, Level::kNet, 5), Level::kNet);
  EXPECT_EQ(level_of_mode(kModeSample, Level::kGpu, 5), Level::kGpu);  // no more than was wanted
  EXPECT_EQ(level_of_mode(kModeOff, Level::kStep, 5), Level::kApi);
}

TEST(NcclLevel, keeps_the_channels_where_nccl_would_not_survive_without) {
  EXPECT_EQ(level_of_mode(kModeCount, Level::kStep, 7), Level::kGpu);
  EXPECT_EQ(level_of_mode(kModeCount, Level::kApi, 7), Level::kApi);
}

}  // namespace
}  // namespace aon::nccl
