// What NCCL is asked for, at each level and version.

#include "plugins/nccl/level.h"

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
  for (const char* text : {"net", "step", "much"}) {
    EXPECT_STRNE(choose_level(text, 7, kEnough).reason, "") << text;
    EXPECT_STRNE(choose_level(text, 7, kEnough).remedy, "") << text;
  }
  EXPECT_EQ(choose_level("off", 7, kEnough).level, Level::kOff);
}

}  // namespace
}  // namespace aon::nccl
