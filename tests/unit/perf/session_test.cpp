#include "plugins/perf/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "core/provider/loader.h"
#include "plugins/perf/cost.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kPerfProvider;  // the build writes it

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using testing::HasSubstr;

constexpr uint32_t kProcess = 3;
constexpr pid_t kPid = 70;
constexpr pid_t kOtherPid = 80;
constexpr uint64_t kSwitchNs = 1000;
const size_t kOpenedEvents = event_types().size() - 2;  // without what follows from others

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
    session_.emplace(&core_, &aon::test::fake_core_api(), fake_kernel(), probe_all(fake_kernel()),
                     kSwitchNs);
    return *session_;
  }
  /// What the kernel has counted of `config` for a process of one thread.
  static void set_count(pid_t pid, uint64_t config, uint64_t count) {
    for (const auto& [fd, open] : fake.open) {
      if (open.pid == pid && open.attr.type == PERF_TYPE_SOFTWARE && open.attr.config == config)
        fake.values[fd] = {count, 10, 10};
    }
  }
  static void set_stat(pid_t pid, const char* faults_and_times) {
    fake.files["/proc/" + std::to_string(pid) + "/stat"] = std::to_string(pid) +
                                                           " (a b) c) R 1 1 1 0 -1 4194304 " +
                                                           faults_and_times + " 0 0 20 0 1 0 4711";
  }
  void tick_a_second() {
    for (int i = 0; i < 10; ++i) session_->tick(++now_);
  }

  aon_core core_;
  uint64_t now_ = 0;
  std::optional<Session> session_;
};

/// Two processes of one thread each; the first one switches 100 times as often as the other.
class SwitchingProcesses : public PerfSession {
 protected:
  void SetUp() override {
    PerfSession::SetUp();
    fake.tasks = {{kPid, {kPid}}, {kOtherPid, {kOtherPid}}};
    set_stat(kPid, "20 0 3 0 100 50");
    set_stat(kOtherPid, "20 0 3 0 100 50");
    fake.task_counts = {{kPid, {70'000, 0, false}}, {kOtherPid, {700, 0, false}}};
    start();
    session_->process_started(kProcess, kPid);
    session_->process_started(kOther, kOtherPid);
    set_count(kPid, PERF_COUNT_SW_CONTEXT_SWITCHES, 50'000);
    set_count(kPid, PERF_COUNT_SW_PAGE_FAULTS_MIN, 500);
    set_count(kOtherPid, PERF_COUNT_SW_CONTEXT_SWITCHES, 500);
    tick_a_second();
  }
  static size_t open_count(pid_t pid) {
    return static_cast<size_t>(std::count_if(fake.open.begin(), fake.open.end(),
                                             [&](const auto& o) { return o.second.pid == pid; }));
  }
  double last(uint32_t process, const char* metric) const {
    return core_.samples_of(process, metric).back().value;
  }

  static constexpr uint32_t kOther = 4;
};

TEST_F(SwitchingProcesses, are_charged_for_each_switch_and_fault) {
  EXPECT_EQ(core_.cost_ns, 50'500 * kSwitchNs + 500 * kFaultNs);
  tick_a_second();
  EXPECT_EQ(core_.cost_ns, 50'500 * kSwitchNs + 500 * kFaultNs);
}

TEST_F(SwitchingProcesses, those_that_switch_most_are_counted_from_proc) {
  session_->throttle(2);
  EXPECT_EQ(open_count(kPid), 0u);
  EXPECT_EQ(open_count(kOtherPid), kOpenedEvents);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("counted from /proc once a second"));
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("hardware events"));
  EXPECT_EQ(core_.states.at(kOther).state, AON_STATE_ON);

  set_stat(kPid, "27 0 5 0 130 60");
  fake.task_counts[kPid] = {70'100, 0, false};
  const uint64_t cost_ns = core_.cost_ns;
  const size_t cycles = core_.samples_of(kProcess, "cycles").size();
  tick_a_second();
  EXPECT_EQ(last(kProcess, "context-switches"), 50'100.0);
  EXPECT_EQ(last(kProcess, "page-faults"), 509.0);
  EXPECT_EQ(last(kProcess, "major-faults"), 2.0);
  EXPECT_EQ(last(kProcess, "task-clock"), 10 + 40e9 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(core_.samples_of(kProcess, "cycles").size(), cycles);
  EXPECT_EQ(core_.cost_ns, cost_ns);
}

TEST_F(SwitchingProcesses, are_counted_by_the_kernel_again_from_where_they_were) {
  session_->throttle(2);
  fake.task_counts[kPid] = {70'100, 0, false};
  session_->throttle(1);
  EXPECT_EQ(open_count(kPid), kOpenedEvents);
  EXPECT_EQ(last(kProcess, "context-switches"), 50'100.0);
  set_count(kPid, PERF_COUNT_SW_CONTEXT_SWITCHES, 40);
  const uint64_t cost_ns = core_.cost_ns;
  tick_a_second();
  EXPECT_EQ(last(kProcess, "context-switches"), 50'140.0);
  EXPECT_EQ(core_.cost_ns, cost_ns + 40 * kSwitchNs);
  // The hardware's counts lack the time between.
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("for a time"));
}

TEST_F(SwitchingProcesses, stay_counted_from_proc_where_the_kernel_refuses_now) {
  session_->throttle(2);
  fake.refuse = [](const perf_event_attr&, pid_t) { return -EMFILE; };
  session_->throttle(1);
  fake.task_counts[kPid] = {70'100, 0, false};
  tick_a_second();
  EXPECT_EQ(last(kProcess, "context-switches"), 50'100.0);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("counted from /proc once a second"));
}

TEST_F(SwitchingProcesses, one_that_comes_later_is_left_without_another_word) {
  session_->throttle(0);
  constexpr uint32_t kLater = 5;
  fake.tasks[90] = {90};
  set_stat(90, "0 0 0 0 0 0");
  session_->process_started(kLater, 90);
  EXPECT_EQ(open_count(90), kOpenedEvents);
  set_count(90, PERF_COUNT_SW_CONTEXT_SWITCHES, 1000);
  tick_a_second();
  EXPECT_EQ(open_count(90), 0u);
  EXPECT_EQ(last(kLater, "context-switches"), 1000.0);
}

TEST_F(SwitchingProcesses, are_tried_again_where_the_kernel_refused) {
  session_->throttle(2);
  fake.refuse = [](const perf_event_attr&, pid_t) { return -EMFILE; };
  session_->throttle(1);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("could not be counted by the kernel"));
  fake.refuse = [](const perf_event_attr&, pid_t) { return 0; };
  for (int i = 0; i < 11; ++i) tick_a_second();
  EXPECT_EQ(open_count(kPid), kOpenedEvents);
}

TEST_F(SwitchingProcesses, stay_counted_from_proc_where_only_the_hardware_is_refused) {
  session_->throttle(2);
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.type == PERF_TYPE_HARDWARE ? -EBUSY : 0;
  };
  session_->throttle(1);
  EXPECT_EQ(open_count(kPid), 0u);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("hardware events"));
}

TEST_F(SwitchingProcesses, another_process_of_the_same_number_is_not_counted) {
  session_->throttle(0);
  fake.files["/proc/70/stat"] = "70 (x) R 1 1 1 0 -1 4194304 9000 0 9 0 0 0 0 0 20 0 1 0 9999";
  const size_t samples = core_.samples_of(kProcess, "page-faults").size();
  tick_a_second();
  EXPECT_EQ(core_.samples_of(kProcess, "page-faults").size(), samples);
}

TEST_F(SwitchingProcesses, keep_their_last_counts_when_they_end) {
  session_->throttle(0);
  EXPECT_TRUE(fake.open.empty());
  fake.task_counts[kPid] = {70'001, 0, false};
  set_stat(kPid, "21 0 3 0 100 50");
  session_->process_ended(kProcess);
  EXPECT_EQ(last(kProcess, "context-switches"), 50'001.0);
  EXPECT_EQ(last(kProcess, "page-faults"), 501.0);
  fake.files.clear();  // it had ended before
  session_->process_ended(kOther);
  EXPECT_EQ(last(kOther, "context-switches"), 500.0);
}

TEST_F(PerfSession, samples_every_event_of_a_process) {
  Session& session = start();
  session.process_started(kProcess, kPid);
  EXPECT_EQ(core_.metrics.size(), event_types().size());
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_ON);
  session.tick(5);
  EXPECT_EQ(core_.samples.size(), event_types().size());
  EXPECT_EQ(core_.samples[0].metric, "minor-faults");
  EXPECT_EQ(core_.samples[0].ticks, 5u);
}

TEST_F(PerfSession, counts_nothing_that_follows_from_other_counts) {
  start().process_started(kProcess, kPid);
  EXPECT_EQ(fake.open.size(), 2 * kOpenedEvents);  // of two threads
  set_count(kPid, PERF_COUNT_SW_PAGE_FAULTS_MIN, 30);
  set_count(kPid, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 4);
  session_->tick(1);
  EXPECT_EQ(core_.samples_of(kProcess, "page-faults").back().value, 34.0);
  EXPECT_EQ(core_.samples_of(kProcess, "task-clock").back().value, 10.0);
}

TEST_F(PerfSession, counts_of_one_mode_follow_from_nothing) {
  const EventType of_kernel = {
      "page-faults:k", "1", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false, 0, 0,
      false,           true};
  std::vector<EventType> types(event_types().begin(), event_types().end());
  types.push_back(of_kernel);
  session_.emplace(&core_, &aon::test::fake_core_api(), fake_kernel(),
                   probe_all(fake_kernel(), types), kSwitchNs);
  session_->process_started(kProcess, kPid);
  EXPECT_EQ(fake.open.size(), 2 * (kOpenedEvents + 1));
  set_count(kPid, PERF_COUNT_SW_PAGE_FAULTS_MIN, 30);
  set_count(kPid, PERF_COUNT_SW_PAGE_FAULTS, 7);
  session_->tick(1);
  EXPECT_EQ(core_.samples_of(kProcess, "page-faults").back().value, 30.0);
  EXPECT_EQ(core_.samples_of(kProcess, "page-faults:k").back().value, 7.0);
}

TEST_F(PerfSession, counts_all_where_the_kernel_reads_no_groups) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return (attr.read_format & PERF_FORMAT_GROUP) != 0 ? -EINVAL : 0;
  };
  start().process_started(kProcess, kPid);
  EXPECT_EQ(fake.open.size(), 2 * event_types().size());
}

TEST_F(PerfSession, gives_the_end_of_the_counts_when_a_process_ends) {
  Session& session = start();
  session.process_started(kProcess, kPid);
  for (auto& [fd, open] : fake.open) fake.values[fd] = {21, 10, 10};
  core_.ticks = 99;
  session.process_ended(kProcess);
  const auto samples = core_.samples_of(kProcess, "page-faults");
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].value, 84.0);  // minor and major ones of two threads
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
  const std::filesystem::path path = kPerfProvider;
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
