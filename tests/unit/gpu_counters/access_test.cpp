#include <aon/gpu_counter_access.h>
#include <gtest/gtest.h>

namespace aon {
namespace {

constexpr const char* kRestricted = "RmLogonRC: 1\nRmProfilingAdminOnly: 1\nTCEBypassMode: 0\n";
constexpr const char* kOpen = "RmLogonRC: 1\nRmProfilingAdminOnly: 0\nTCEBypassMode: 0\n";
constexpr const char* kHost = "         0          0 4294967295\n";
constexpr const char* kNamespace = "         0       1000          1\n";

std::string status_with(const char* effective) {
  return std::string("Name:\tapp\nUid:\t0\t0\t0\t0\nCapInh:\t0000000000000000\nCapPrm:\t") +
         "000001ffffffffff\nCapEff:\t" + effective + "\nCapBnd:\t000001ffffffffff\n";
}

// What Docker gives root.
const std::string kContainer = status_with("00000000a80425fb");
const std::string kAll = status_with("000001ffffffffff");
const std::string kOnlySysAdmin = status_with("0000000000200000");
const std::string kNone = status_with("0000000000000000");

TEST(GpuCounterAccess, of_a_restricted_driver_needs_the_capability_not_root) {
  EXPECT_EQ(gpu_counter_access(kRestricted, kContainer, kHost),
            GpuCounterAccess::kAdministratorsOnly);
  EXPECT_EQ(gpu_counter_access(kRestricted, kNone, kHost), GpuCounterAccess::kAdministratorsOnly);
  EXPECT_EQ(gpu_counter_access(kRestricted, kAll, kHost), GpuCounterAccess::kAllowed);
  EXPECT_EQ(gpu_counter_access(kRestricted, kOnlySysAdmin, kHost), GpuCounterAccess::kAllowed);
}

TEST(GpuCounterAccess, is_not_had_by_a_capability_of_a_user_namespace) {
  EXPECT_EQ(gpu_counter_access(kRestricted, kAll, kNamespace),
            GpuCounterAccess::kAdministratorsOnly);
}

TEST(GpuCounterAccess, is_everybodys_where_the_driver_says_so) {
  EXPECT_EQ(gpu_counter_access(kOpen, kNone, kNamespace), GpuCounterAccess::kAllowed);
}

TEST(GpuCounterAccess, is_told_apart_from_a_driver_that_is_not_there) {
  EXPECT_EQ(gpu_counter_access("", kAll, kHost), GpuCounterAccess::kNoDriver);
}

TEST(GpuCounterAccess, is_not_assumed_of_texts_that_say_nothing) {
  EXPECT_EQ(gpu_counter_access(kRestricted, "", kHost), GpuCounterAccess::kAdministratorsOnly);
  EXPECT_EQ(gpu_counter_access(kRestricted, "\nCapEff:\t", kHost),
            GpuCounterAccess::kAdministratorsOnly);
  EXPECT_EQ(gpu_counter_access(kRestricted, kAll, ""), GpuCounterAccess::kAdministratorsOnly);
}

TEST(GpuCounterAccess, has_a_remedy_that_helps_in_a_container_and_on_the_host) {
  const std::string_view remedy = kGpuCounterRemedy;
  EXPECT_NE(remedy.find("--cap-add SYS_ADMIN"), std::string_view::npos);
  EXPECT_NE(remedy.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string_view::npos);
}

}  // namespace
}  // namespace aon
