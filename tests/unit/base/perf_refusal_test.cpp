#include <aon/perf_refusal.h>
#include <gtest/gtest.h>

#include <string>

namespace aon {
namespace {

std::string remedy_of(int error_number, PerfReach reach, int level = kUnknownParanoidLevel) {
  return perf_refusal(error_number, reach, level).remedy;
}

TEST(PerfRefusal, asks_for_no_lower_level_than_the_event_needs) {
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kUserMode, 3), "sysctl kernel.perf_event_paranoid=2");
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kUserMode), "sysctl kernel.perf_event_paranoid=2");
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kKernelMode, 2), "sysctl kernel.perf_event_paranoid=1");
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kWholeCpu, 1), "sysctl kernel.perf_event_paranoid=0");
}

TEST(PerfRefusal, does_not_blame_a_level_that_allows_the_event) {
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kUserMode, 2), "docker run --cap-add PERFMON");
  EXPECT_EQ(remedy_of(EACCES, PerfReach::kWholeCpu, -1), "docker run --cap-add PERFMON");
  EXPECT_EQ(remedy_of(EPERM, PerfReach::kUserMode, 4), "docker run --cap-add PERFMON");
}

TEST(PerfRefusal, has_a_remedy_for_each_reason) {
  for (int error_number = 1; error_number < 134; ++error_number) {
    const PerfRefusal refusal = perf_refusal(error_number, PerfReach::kUserMode);
    EXPECT_EQ(std::string(refusal.reason).empty(), std::string(refusal.remedy).empty())
        << error_number;
  }
  for (const int known : {ENOENT, ENODEV, EOPNOTSUPP, EACCES, EPERM, ENOSYS, EMFILE, EBUSY})
    EXPECT_STRNE(perf_refusal(known, PerfReach::kUserMode).reason, "") << known;
  EXPECT_STREQ(perf_refusal(EINVAL, PerfReach::kUserMode).reason, "");
}

}  // namespace
}  // namespace aon
