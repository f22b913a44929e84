#include "launcher/unknown_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace aon::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> told(const std::vector<const char*>& environment) {
  std::vector<std::string> texts;
  for (const WrongSetting& one : unknown_settings(environment)) texts.push_back(one.message);
  return texts;
}

TEST(UnknownSettings, are_told_with_near_names) {
  EXPECT_THAT(told({"HOME=/root", "AON_BUGDET=2", "AON_MEMORY=16MiB", "AON_DISABLED=1"}),
              ElementsAre("AON_BUGDET is no setting of AON; near it: AON_BUDGET",
                          "AON_DISABLED is no setting of AON; near it: AON_DISABLE"));
  EXPECT_EQ(unknown_settings(std::vector<const char*>{"AON_DISC=1G"}).front().variable, "AON_DISC");
}

TEST(UnknownSettings, may_have_a_word_too_many_or_too_few) {
  EXPECT_THAT(told({"AON_OUT=job"}),
              ElementsAre("AON_OUT is no setting of AON; near it: AON_OUTPUT"));
  EXPECT_THAT(told({"AON_SAMPLING_HZ=97"}),
              ElementsAre("AON_SAMPLING_HZ is no setting of AON; near it: AON_SAMPLING"));
  EXPECT_THAT(told({"AON_NCCL=gpu"}),
              ElementsAre("AON_NCCL is no setting of AON; near it: AON_NCCL_LEVEL, "
                          "AON_NCCL_AS_MPI, AON_NCCL_CHAIN"));
}

TEST(UnknownSettings, of_others_are_none) {
  EXPECT_THAT(told({"AON_ROOT=/opt/aon", "AON_HOME=/opt/aon", "AON_DIR=/opt/aon", "AON_PATH=x",
                    "AON_VERSION=1", "AON_=", "AON_BUDGET\n=1", "NOTHING", "_AON_BUDGET=1"}),
              IsEmpty());
}

/// Those that AON's own parts set for one another.
TEST(UnknownSettings, of_ours_are_none) {
  EXPECT_THAT(told({"AON_SOCKET=x", "AON_OUTPUT=x", "AON_OUTPUT_GAVE=x", "AON_DOOR=x",
                    "AON_DOOR_GAVE=x", "AON_DOOR_OUTPUT=x", "AON_LEFT_OUT=mpi", "AON_STDERR=1:2",
                    "AON_COUNTERS=x", "AON_SAMPLING_TIMER=97", "AON_CUPTI_LIB=x"}),
              IsEmpty());
}

TEST(UnknownSettings, are_bounded) {
  const std::string name = "AON_" + std::string(100000, 'B') + "=1";
  EXPECT_THAT(told({name.c_str()}), IsEmpty());
  EXPECT_EQ(told(std::vector<const char*>(100, "AON_BUGDET=1")).size(), 8u);
}

}  // namespace
}  // namespace aon::launcher
