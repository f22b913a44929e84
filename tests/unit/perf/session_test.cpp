#include "plugins/perf/session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/provider/loader.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;

constexpr uint32_t kProcess = 3;
constexpr pid_t kPid = 70;

class PerfSession : public testing::Test {
 protected:
  void SetUp() override {
    fake = {};
    fake.tasks[kPid] = {kPid, kPid + 1};
  }
  void TearDown() override {
    session_.reset();
    EXPECT_TRUE(fake.open.empty()) << "descriptors left open";
  }
  Session& start() {
    session_.emplace(&core_, &aon::test::fake_core_api(), fake_kernel(), probe_all(fake_kernel()));
    return *session_;
  }
  aon_core core_;
  std::optional<Session> session_;
};

TEST_F(PerfSession, samples_every_event_of_a_process) {
  Session& session = start();
  session.process_started(kProcess, kPid);
  EXPECT_EQ(core_.metrics.size(), event_types().size());
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_ON);
  session.tick(5);
  EXPECT_EQ(core_.samples.size(), event_types().size());
  EXPECT_EQ(core_.samples[0].metric, "task-clock");
  EXPECT_EQ(core_.samples[0].ticks, 5u);
}

TEST_F(PerfSession, gives_the_end_of_the_counts_when_a_process_ends) {
  Session& session = start();
  session.process_started(kProcess, kPid);
  for (auto& [fd, open] : fake.open) fake.values[fd] = {21, 10, 10};
  core_.ticks = 99;
  session.process_ended(kProcess);
  const auto samples = core_.samples_of(kProcess, "page-faults");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].value, 42.0);  // two threads
  EXPECT_EQ(samples[0].ticks, 99u);
  EXPECT_TRUE(fake.open.empty());
  session.tick(100);
  session.process_ended(kProcess);
  EXPECT_EQ(core_.samples.size(), event_types().size());
}

TEST_F(PerfSession, is_off_for_a_process_that_has_ended_already) {
  Session& session = start();
  session.process_started(kProcess, kPid + 10);
  session.tick(1);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_OFF);
  EXPECT_TRUE(core_.samples.empty());
}

TEST_F(PerfSession, reads_proc_in_every_tenth_tick_where_perf_may_not) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.exclude_kernel != 0 ? 0 : -EACCES;
  };
  fake.task_counts[gettid()] = {1, 1, true};  // what the probe looks at
  fake.task_counts[kPid] = {100, 10, true};
  Session& session = start();
  session.process_started(kProcess, kPid);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_ON);
  fake.task_counts[kPid] = {107, 11, true};
  for (uint64_t tick = 1; tick <= 20; ++tick) session.tick(tick);
  const auto switches = core_.samples_of(kProcess, "context-switches");
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(switches[0].value, 7.0);
  EXPECT_EQ(switches[0].ticks, 10u);
  EXPECT_EQ(core_.samples_of(kProcess, "cpu-migrations").back().value, 1.0);
  EXPECT_EQ(core_.samples_of(kProcess, "cycles").size(), 20u);
}

// The real provider on the real kernel; what the machine does not allow is told, not failed.
TEST(PerfProvider, counts_the_cpu_time_of_a_real_process) {
  const std::filesystem::path path = PERF_PROVIDER;
  Result<provider::Provider> loaded =
      provider::Provider::load(path, AON_HOST_NODE, path.parent_path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  aon_core core;
  if (!loaded->start(&core, aon::test::fake_core_api(), "")) {
    EXPECT_EQ(core.states.at(AON_PROCESS_NODE).state, AON_STATE_OFF);
    EXPECT_NE(core.states.at(AON_PROCESS_NODE).reason, "");
    GTEST_SKIP() << "perf: " << core.states.at(AON_PROCESS_NODE).reason;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) asm volatile("");
  }
  loaded->process_started(kProcess, pid, 0);
  for (uint64_t tick = 0; tick < 3; ++tick) {
    usleep(100'000);
    loaded->tick(tick);
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  loaded->process_ended(kProcess);
  loaded->stop();
  const auto samples = core.samples_of(kProcess, "task-clock");
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_GT(samples.back().value, 1e6);
  EXPECT_LT(samples.back().value, 60e9);
  for (size_t i = 1; i < samples.size(); ++i) EXPECT_GE(samples[i].value, samples[i - 1].value);
}

}  // namespace
}  // namespace aon::perf
