#include "core/agent/memory_limit.h"

#include <gtest/gtest.h>

#include <map>

namespace aon::agent {
namespace {

constexpr uint64_t kMachineBytes = uint64_t{512} << 30;

uint64_t limit_with(const std::map<std::string, std::string>& files) {
  return memory_limit_bytes(kMachineBytes,
                            [&](const std::string& path) -> std::optional<std::string> {
                              const auto found = files.find(path);
                              if (found == files.end()) return std::nullopt;
                              return found->second;
                            });
}

TEST(MemoryLimitTest, is_the_machines_memory_without_a_group) {
  EXPECT_EQ(limit_with({}), kMachineBytes);
  EXPECT_EQ(limit_with({{"/proc/self/cgroup", "0::/\n"}}), kMachineBytes);
  EXPECT_EQ(limit_with({{"/proc/self/cgroup", "nonsense\n:\n1:2"}}), kMachineBytes);
}

TEST(MemoryLimitTest, is_the_smallest_of_the_group_and_those_above_it) {
  EXPECT_EQ(limit_with({{"/proc/self/cgroup", "0::/slurm/job_7/step_0\n"},
                        {"/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"},
                        {"/sys/fs/cgroup/slurm/job_7/memory.max", "4294967296\n"},
                        {"/sys/fs/cgroup/slurm/memory.max", "8589934592\n"}}),
            uint64_t{4} << 30);
}

TEST(MemoryLimitTest, is_that_of_a_group_of_version_1_too) {
  const std::string groups =
      "9:cpu,cpuacct:/other\n4:memory:/slurm/uid_1/job_7\n1:name=systemd:/\n";
  EXPECT_EQ(limit_with({{"/proc/self/cgroup", groups},
                        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
                        {"/sys/fs/cgroup/memory/slurm/uid_1/job_7/memory.limit_in_bytes",
                         "4294967296\n"}}),
            uint64_t{4} << 30);
}

TEST(MemoryLimitTest, is_the_smaller_one_of_both_versions) {
  EXPECT_EQ(limit_with({{"/proc/self/cgroup", "4:memory:/a\n0::/b\n"},
                        {"/sys/fs/cgroup/b/memory.max", "1000\n"},
                        {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000\n"}}),
            1000u);
}

}  // namespace
}  // namespace aon::agent
