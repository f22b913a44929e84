// What NCCL is asked for, at each level and version.

#include "plugins/nccl/level.h"

#include <aon/nccl.h>
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

/// A chained plugin is told of all that has what it asks for, as it would be alone.
TEST(NcclLevel, who_asks_for_events_is_told_what_these_belong_to) {
  for (const uint64_t copies : {kCopyEngineColl, kCopyEngineSync, kCopyEngineBatch}) {
    EXPECT_TRUE(is_told(kGroupApi, copies));
    EXPECT_TRUE(is_told(kCollApi, copies)) << copies;
    EXPECT_TRUE(is_told(kCopyEngineColl, copies)) << copies;
    EXPECT_FALSE(is_told(kP2pApi, copies));
    EXPECT_FALSE(is_told(kColl, copies));
    for (const uint64_t other : {kCopyEngineSync, kCopyEngineBatch})
      EXPECT_EQ(is_told(other, copies), other == copies);
    EXPECT_FALSE(is_told(kCollApi, copies & events_of(5)));
  }
  for (const uint64_t type : {kGroupApi, kCollApi, kP2pApi, kGroup, kColl, kP2p, kKernelChannel})
    EXPECT_TRUE(is_told(type, kKernelPhase)) << type;
  EXPECT_FALSE(is_told(kKernelPhase, kKernelChannel));
  EXPECT_FALSE(is_told(kProxyOp, kKernelPhase));
  EXPECT_FALSE(is_told(kKernelLaunch, kKernelPhase));
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
  const NcclLimits limits = limits_of(Level::kStep, 5, kEnough);
  EXPECT_EQ(nccl_mode_of(Level::kStep, false), static_cast<uint32_t>(kModeSample));
  for (const Level level : {Level::kApi, Level::kGpu, Level::kNet, Level::kStep})
    EXPECT_EQ(level_of_mode(nccl_mode_of(level, false), limits), level);
  EXPECT_EQ(level_of_mode(kModeSample, limits), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeSample + 1, limits), Level::kNet);
  EXPECT_EQ(level_of_mode(kModeSample + 3, limits), Level::kGpu);
  EXPECT_EQ(level_of_mode(kModeCount, limits), Level::kApi);
  EXPECT_EQ(level_of_mode(kModeSample | kModePaused, limits), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeOff, limits), Level::kApi);
  EXPECT_EQ(limits.site(), kNcclProxySite);
}

TEST(NcclLevel, is_that_of_the_launch_before_anybody_says_another) {
  for (const Level level : {Level::kApi, Level::kGpu, Level::kNet, Level::kStep}) {
    EXPECT_EQ(level_of_mode(kModeUndefined, limits_of(level, 5, kEnough)), level);
    EXPECT_EQ(level_of_mode(kModePaused, limits_of(level, 5, kEnough)), level);
  }
}

TEST(NcclLevel, rises_above_that_of_the_launch) {
  const NcclLimits limits = limits_of(Level::kApi, 5, kEnough);
  EXPECT_EQ(level_of_mode(kModeSample, limits), Level::kStep);
  EXPECT_EQ(limits.reason, NcclLimit::kNone);
}

TEST(NcclLevel, stays_where_it_began_without_a_timer_or_room) {
  EXPECT_EQ(limits_of(Level::kApi, 3, kEnough).reason, NcclLimit::kOldNccl);
  EXPECT_EQ(limits_of(Level::kApi, 5, uint64_t{64} << 20).reason, NcclLimit::kSmallShm);
  for (const NcclLimits& limits :
       {limits_of(Level::kApi, 3, kEnough), limits_of(Level::kApi, 5, uint64_t{64} << 20)})
    EXPECT_EQ(level_of_mode(kModeSample, limits), Level::kApi);
}

/// The same words say one level more, so that the last one is gpu.
TEST(NcclLevel, keeps_the_channels_where_nccl_would_not_survive_without) {
  const NcclLimits limits = limits_of(Level::kNet, 7, kEnough);
  EXPECT_EQ(limits.site(), kNcclFixedSite);
  EXPECT_EQ(nccl_mode_of(Level::kStep, true), static_cast<uint32_t>(kModeSample + 1));
  EXPECT_EQ(level_of_mode(kModeSample + 1, limits), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeSample + 3, limits), Level::kNet);
  EXPECT_EQ(level_of_mode(kModeCount, limits), Level::kGpu);
  EXPECT_EQ(nccl_mode_of(Level::kGpu, true), static_cast<uint32_t>(kModeCount));
}

TEST(NcclLevel, begins_no_channels_again_where_nccl_has_lost_count) {
  const NcclLimits limits = limits_of(Level::kStep, 5, kEnough);
  const NcclLimits high = limits.counts_differ(Level::kNet);
  EXPECT_EQ(level_of_mode(kModeSample, high), Level::kStep);
  EXPECT_EQ(level_of_mode(kModeCount, high), Level::kApi);
  const NcclLimits low = limits.counts_differ(Level::kApi);
  EXPECT_EQ(low.reason, NcclLimit::kCountsDiffer);
  for (const uint32_t mode : {uint32_t{kModeUndefined}, uint32_t{kModeSample}, kModeSample + 3u})
    EXPECT_EQ(level_of_mode(mode, low), Level::kApi);
  const NcclLimits fixed = limits_of(Level::kGpu, 7, kEnough);
  EXPECT_EQ(fixed.counts_differ(Level::kGpu).word(), fixed.word());
}

TEST(NcclLevel, switches_no_channels_where_graphs_are_not_told_of) {
  EXPECT_EQ(limits_of(Level::kApi, 4, kEnough).reason, NcclLimit::kUntoldGraphs);
  EXPECT_EQ(level_of_mode(kModeSample, limits_of(Level::kApi, 4, kEnough)), Level::kApi);
  EXPECT_EQ(level_of_mode(kModeCount, limits_of(Level::kNet, 4, kEnough)), Level::kGpu);
}

TEST(NcclLevel, begins_no_channels_where_nccl_would_not_survive_it) {
  const NcclLimits limits = limits_of(Level::kApi, 7, kEnough);
  EXPECT_EQ(limits.reason, NcclLimit::kFixedChannels);
  for (const uint32_t mode : {uint32_t{kModeCount}, uint32_t{kModeSample}, kModeSample + 1u})
    EXPECT_EQ(level_of_mode(mode, limits), Level::kApi);
}

}  // namespace
}  // namespace aon::nccl
