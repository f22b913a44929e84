#include "plugins/perf/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/perf/chosen.h"
#include "tests/unit/perf/fake_kernel.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

StateText state_with(int paranoid, std::function<int(const perf_event_attr&, pid_t)> refuse,
                     const OpenProblems& problems = {}) {
  fake = {};
  fake.paranoid = paranoid;
  fake.refuse = std::move(refuse);
  return state_of(probe_all(fake_kernel()), problems);
}
int allow(const perf_event_attr&, pid_t) { return 0; }
int no_pmu(const perf_event_attr& attr, pid_t) {
  return attr.type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
}

TEST(PerfState, is_on_and_silent_when_all_is_there) {
  const StateText state = state_with(1, allow);
  EXPECT_EQ(state.state, AON_STATE_ON);
  EXPECT_THAT(state.reason, IsEmpty());
  EXPECT_THAT(state.remedy, IsEmpty());
}

TEST(PerfState, names_a_missing_pmu_once) {
  const StateText state = state_with(1, no_pmu);
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_EQ(state.reason, "no PMU is visible (not counted: hardware events)");
  EXPECT_EQ(state.remedy, "bare metal, or a virtual PMU (QEMU: -cpu host,pmu=on)");
}

TEST(PerfState, names_the_hardware_events_where_some_are_there) {
  const StateText state = state_with(1, [](const perf_event_attr& attr, pid_t) {
    const bool is_there = attr.config == PERF_COUNT_HW_CPU_CYCLES;
    return attr.type == PERF_TYPE_HARDWARE && !is_there ? -ENOENT : 0;
  });
  EXPECT_EQ(
      state.reason,
      "no PMU is visible (not counted: instructions, cache-references, cache-misses, branches, "
      "branch-misses)");
}

TEST(PerfState, names_each_of_several_events_whose_names_begin_alike) {
  fake = {};
  fake.refuse = no_pmu;
  const ChosenEvents chosen("0/0x0/0/0/2/cycles:u,0/0x9/0/0/0/ref-cycles,0/0x0/0/0/0/cycles");
  Availability availability = probe_all(fake_kernel(), chosen.types());
  availability.names_hardware = true;
  EXPECT_EQ(state_of(availability, {}).reason,
            "no PMU is visible (not counted: cycles:u, ref-cycles, cycles)");
}

TEST(PerfState, says_that_hybrid_cpus_count_on_some_cores_only) {
  const auto state_of_hybrid = [](std::function<int(const perf_event_attr&, pid_t)> refuse) {
    fake = {};
    fake.files["/sys/bus/event_source/devices/cpu_core/cpus"] = "0-15\n";
    fake.files["/sys/bus/event_source/devices/cpu_atom/cpus"] = "16-23\n";
    fake.refuse = std::move(refuse);
    return state_of(probe_all(fake_kernel()), {});
  };
  const StateText state = state_of_hybrid(allow);
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_EQ(state.reason, "hardware events are counted on performance cores only");
  EXPECT_THAT(state.remedy, HasSubstr("taskset"));
  EXPECT_EQ(state_of_hybrid(no_pmu).reason, "no PMU is visible (not counted: hardware events)");
}

TEST(PerfState, is_off_with_the_sysctl_when_the_kernel_forbids_all) {
  const StateText state = state_with(3, [](const perf_event_attr&, pid_t) { return -EACCES; });
  EXPECT_EQ(state.state, AON_STATE_OFF);
  EXPECT_THAT(state.reason, HasSubstr("kernel.perf_event_paranoid is 3"));
  EXPECT_EQ(state.remedy, "sysctl kernel.perf_event_paranoid=2");
}

TEST(PerfState, asks_for_level_1_for_kernel_side_events_that_proc_does_not_tell) {
  const StateText state = state_with(
      2, [](const perf_event_attr& attr, pid_t) { return attr.exclude_kernel != 0 ? 0 : -EACCES; });
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_THAT(state.reason, HasSubstr("not counted: context-switches, cpu-migrations"));
  EXPECT_EQ(state.remedy, "sysctl kernel.perf_event_paranoid=1");
}

TEST(PerfState, asks_for_level_1_for_what_is_wanted_of_the_kernel_alone) {
  fake = {};
  fake.paranoid = 2;
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.exclude_kernel != 0 ? 0 : -EACCES;
  };
  const ChosenEvents chosen("0/0x0/0/0/1/cycles:k");
  const StateText state = state_of(probe_all(fake_kernel(), chosen.types()), {});
  EXPECT_THAT(state.reason, HasSubstr("only user mode may be counted"));
  EXPECT_THAT(state.reason, Not(HasSubstr("may not be watched")));
  EXPECT_EQ(state.remedy, "sysctl kernel.perf_event_paranoid=1");
}

TEST(PerfState, names_a_container_that_forbids_the_call) {
  const StateText state = state_with(2, [](const perf_event_attr&, pid_t) { return -EPERM; });
  EXPECT_EQ(state.state, AON_STATE_OFF);
  EXPECT_THAT(state.remedy, HasSubstr("--cap-add PERFMON"));
}

TEST(PerfState, names_what_one_process_lacks) {
  OpenProblems problems;
  problems.errors.push_back({&event_types()[0], EMFILE});
  problems.tasks_left_out = true;
  const StateText state = state_with(1, allow, problems);
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_THAT(state.reason, HasSubstr("no file descriptor left"));
  EXPECT_THAT(state.reason, HasSubstr("more than 64 threads"));
  EXPECT_EQ(state.remedy, "ulimit -n 65536");
}

TEST(PerfState, is_off_for_a_process_that_ended_first) {
  OpenProblems problems;
  problems.nothing_opened = true;
  const StateText state = state_with(1, allow, problems);
  EXPECT_EQ(state.state, AON_STATE_OFF);
  EXPECT_THAT(state.reason, HasSubstr("ended before"));
}

TEST(PerfState, does_not_blame_the_machine_for_a_process_that_ended_first) {
  OpenProblems problems;
  problems.nothing_opened = true;
  const StateText state = state_with(1, no_pmu, problems);
  EXPECT_EQ(state.state, AON_STATE_OFF);
  EXPECT_EQ(state.reason, "the process ended before it could be watched");
  EXPECT_THAT(state.remedy, IsEmpty());
}

TEST(PerfState, names_wrong_events_also_of_a_process_that_ended_first) {
  fake = {};
  fake.refuse = allow;
  Availability availability = probe_all(fake_kernel());
  availability.unknown_names = "cicles";
  OpenProblems problems;
  problems.nothing_opened = true;
  const StateText state = state_of(availability, problems);
  EXPECT_EQ(state.state, AON_STATE_OFF);
  EXPECT_THAT(state.reason, HasSubstr("no event of this machine has such a name"));
  EXPECT_THAT(state.reason, HasSubstr("(not counted: cicles)"));
  EXPECT_EQ(state.remedy, "aon-run --events names near ones");
}

TEST(PerfState, has_a_reason_for_every_error) {
  for (int error_number = 1; error_number < 134; ++error_number) {
    EXPECT_THAT(explain(error_number, true, 2).reason, Not(IsEmpty())) << error_number;
  }
}

}  // namespace
}  // namespace aon::perf
