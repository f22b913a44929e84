#include "plugins/node/pmu.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/replay/node/machine.h"

namespace aon::node {
namespace {

const std::string kPmu = "/sys/bus/event_source/devices/amd_df";

test::Machine with(const std::string& more) {
  return test::Machine(kPmu + "/type = 12\n" + kPmu + "/cpumask = 0,64\n" + kPmu +
                       "/format/event = config:0-7,32-35\n" + kPmu +
                       "/format/umask = config:8-15\n" + kPmu + "/format/far = config1:0-7\n" +
                       more);
}

TEST(NodePmu, has_one_cpu_of_each_socket) {
  const test::Machine machine = with("");
  const auto pmu = find_pmu(machine, "amd_df");
  ASSERT_TRUE(pmu);
  EXPECT_EQ(pmu->type, 12u);
  EXPECT_EQ(pmu->cpus, (std::vector<int>{0, 64}));
  EXPECT_FALSE(find_pmu(machine, "amd_l3"));
}

TEST(NodePmu, fields_may_lie_in_two_places) {
  const test::Machine machine = with("");
  const auto pmu = find_pmu(machine, "amd_df");
  EXPECT_EQ(encode(machine, *pmu, "event=0x1c7,umask=0x38"), 0x1000038c7u);
  EXPECT_EQ(encode(machine, *pmu, "event=7"), 7u);
}

TEST(NodePmu, refuses_what_it_cannot_encode) {
  const test::Machine machine = with("");
  const auto pmu = find_pmu(machine, "amd_df");
  for (const char* terms : {"event=0x1000", "umask=0x100", "far=1", "unknown=1", "event=x"}) {
    EXPECT_FALSE(encode(machine, *pmu, terms)) << terms;
  }
}

TEST(NodePmu, names_are_a_prefix_and_a_number) {
  const std::string folder = "/sys/bus/event_source/devices/";
  std::string text;
  for (const char* name : {"uncore_imc", "uncore_imc_0", "uncore_imc_11",
                           "uncore_imc_free_running_0", "uncore_imc_", "uncore_imcx", "cpu"}) {
    text += folder + name + "/type = 1\n";
  }
  const test::Machine machine(text);
  EXPECT_EQ(pmu_names(machine, "uncore_imc"),
            (std::vector<std::string>{"uncore_imc", "uncore_imc_0", "uncore_imc_11"}));
}

TEST(NodePmu, event_scales_each_interval_by_its_own_time) {
  test::Machine machine(
      "event 1/0x2/0 = 0 0 0\n> a\nevent 1/0x2/0 = 100 1000 500\n> b\n"
      "event 1/0x2/0 = 200 2000 1500\n> c\n");
  SocketEvent event(machine);
  ASSERT_EQ(event.open(1, 2, 0), 0);
  EXPECT_EQ(event.read(), 0.0);
  machine.next();
  EXPECT_EQ(event.read(), 200.0);
  machine.next();
  EXPECT_EQ(event.read(), 300.0);
}

TEST(NodePmu, event_closes_its_descriptor) {
  test::Machine machine("event 1/0x2/0 = 0 0 0\nevent 1/0x2/1 !EACCES\n");
  {
    SocketEvent event(machine);
    ASSERT_EQ(event.open(1, 2, 0), 0);
    SocketEvent moved(std::move(event));
    EXPECT_EQ(machine.open_count(), 1u);
    SocketEvent refused(machine);
    EXPECT_EQ(refused.open(1, 2, 1), EACCES);
  }
  EXPECT_EQ(machine.open_count(), 0u);
}

TEST(NodePmu, refusals_have_a_remedy) {
  EXPECT_EQ(explain_refusal(EACCES, 2).remedy, "sysctl kernel.perf_event_paranoid=0");
  EXPECT_NE(explain_refusal(EPERM, -1).remedy.find("PERFMON"), std::string::npos);
  EXPECT_NE(explain_refusal(EMFILE, 2).remedy.find("ulimit"), std::string::npos);
  EXPECT_NE(explain_refusal(EBUSY, 2).remedy, "");
  EXPECT_NE(explain_refusal(ENOSYS, 2).remedy, "");
  EXPECT_NE(explain_refusal(EINVAL, 2).reason.find("Invalid"), std::string::npos);
}

}  // namespace
}  // namespace aon::node
