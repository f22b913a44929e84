// core/agent/affinity.h: how many cores a list has. What moves threads is seen in e2e.
#include "core/agent/affinity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/topology/topology.h"

namespace aon::agent::affinity {
namespace {

TEST(CountCpus, of_single_ones_and_ranges) {
  EXPECT_EQ(count_cpus("0"), 1u);
  EXPECT_EQ(count_cpus("7"), 1u);
  EXPECT_EQ(count_cpus("0-1"), 2u);
  EXPECT_EQ(count_cpus("0-3,8"), 5u);
  EXPECT_EQ(count_cpus("2,4,6-9,64-127"), 70u);
}

TEST(CountCpus, of_what_is_no_list_are_those_of_the_machine) {
  const auto all = static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  for (const char* list : {"", "none", "3-1", "0-", "0-1,", "0,x", "5-99999999999", "-2"})
    EXPECT_EQ(count_cpus(list), all) << list;
}

TEST(CountCpus, of_a_process_are_those_that_it_may_run_on) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const auto list = topology::binding_of(::getpid());
  ASSERT_TRUE(list);
  EXPECT_EQ(count_cpus(*list), static_cast<uint32_t>(CPU_COUNT(&allowed)));
}

}  // namespace
}  // namespace aon::agent::affinity
