#include "tools/machine_check.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <set>

namespace aon::tools {
namespace {

const Check* find(const std::vector<Check>& checks, const std::string& name) {
  for (const Check& check : checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

TEST(MachineCheck, names_each_ability_once) {
  std::vector<Check> checks = check_system();
  const std::vector<Check> libraries = check_libraries();
  checks.insert(checks.end(), libraries.begin(), libraries.end());
  std::set<std::string> names;
  for (const Check& check : checks) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_FALSE(check.detail.empty()) << check.name;
  }
  EXPECT_GE(checks.size(), 19u);
}

TEST(MachineCheck, sees_a_small_limit_and_says_how_to_raise_it) {
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  const rlimit small{64, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &small);
  const std::vector<Check> checks = check_system();
  setrlimit(RLIMIT_NOFILE, &old);
  const Check* files = find(checks, "open files");
  ASSERT_NE(files, nullptr);
  EXPECT_EQ(files->ability, Ability::kLimited);
  EXPECT_NE(files->remedy.find("ulimit -n"), std::string::npos);
}

TEST(MachineCheck, asks_for_no_lower_perf_level_than_an_event_needs) {
  const auto remedy = [](int error_number, PerfReach reach, const char* level) {
    return check_events("events", "counted", error_number, reach, level).remedy;
  };
  EXPECT_EQ(remedy(EACCES, PerfReach::kUserMode, "4"), "sysctl kernel.perf_event_paranoid=2");
  EXPECT_EQ(remedy(EACCES, PerfReach::kKernelMode, "2"), "sysctl kernel.perf_event_paranoid=1");
  EXPECT_EQ(remedy(EACCES, PerfReach::kUserMode, ""), "sysctl kernel.perf_event_paranoid=2");
  EXPECT_EQ(remedy(EPERM, PerfReach::kUserMode, "2"), "docker run --cap-add PERFMON");
  EXPECT_NE(remedy(ENOENT, PerfReach::kUserMode, "2").find("virtual PMU"), std::string::npos);
  const Check unnamed = check_events("events", "counted", EINVAL, PerfReach::kUserMode, "2");
  EXPECT_EQ(unnamed.detail, "Invalid argument");
  EXPECT_EQ(check_events("events", "counted", 0, PerfReach::kUserMode, "2").ability, Ability::kYes);
}

TEST(MachineCheck, judges_the_clock_as_the_agent_does) {
  const std::string cpu = "flags\t\t: fpu constant_tsc nonstop_tsc\n";
  EXPECT_EQ(check_clock(cpu, "tsc\n", "tsc hpet\n").ability, Ability::kYes);
  EXPECT_EQ(check_clock(cpu, "kvm-clock\n", "kvm-clock tsc\n").ability, Ability::kYes);
  const Check unsteady = check_clock(cpu, "hpet\n", "hpet acpi_pm\n");
  EXPECT_EQ(unsteady.ability, Ability::kLimited);
  EXPECT_NE(unsteady.detail.find("clock source is hpet"), std::string::npos);
  EXPECT_EQ(unsteady.remedy, "") << "the kernel would refuse it";
  EXPECT_EQ(check_clock(cpu, "hpet\n", "tsc hpet\n").remedy.find("echo tsc > "), 0u);
  EXPECT_EQ(check_clock("flags : fpu\n", "hpet\n", "tsc hpet\n").remedy, "");
}

TEST(MachineCheck, finds_sealed_memory_here) {
  const std::vector<Check> checks = check_system();
  EXPECT_EQ(find(checks, "sealed shared memory")->ability, Ability::kYes);
}

}  // namespace
}  // namespace aon::tools
