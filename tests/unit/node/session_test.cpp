#include "plugins/node/session.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/provider/loader.h"
#include "plugins/node/cgroup.h"
#include "plugins/node/clocks.h"
#include "plugins/node/energy.h"
#include "plugins/node/process.h"
#include "tests/replay/node/machine.h"
#include "tests/unit/folder_fixture.h"
#include "tests/unit/provider/fake_core.h"

extern const char* const kProviders;  // the build writes it

namespace aon::node {
namespace {

/// Each reading takes as long as it is told.
class SlowSession : public Session {
 public:
  SlowSession(test::Machine& machine, Output output)
      : Session(machine, std::move(output)), machine_(machine) {}
  int read_count = 0;
  uint64_t cost_ns = 0;

 protected:
  StateText find() override { return {}; }
  void read() override {
    ++read_count;
    machine_.set_now_ns(machine_.now_ns() + cost_ns);
  }

 private:
  test::Machine& machine_;
};

TEST(NodeSession, reads_in_every_tick_as_long_as_it_is_quick) {
  test::Machine machine("");
  aon_core core;
  SlowSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.cost_ns = kMaxTickNs;
  session.start(0);
  for (uint64_t tick = 0; tick < 10; ++tick) session.tick(tick);
  EXPECT_EQ(session.read_count, 11);
  session.finish();
  EXPECT_EQ(session.read_count, 12);
  EXPECT_TRUE(core.log.empty());
}

TEST(NodeSession, reads_less_often_when_it_takes_too_long) {
  test::Machine machine("");
  aon_core core;
  SlowSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.start(0);
  session.cost_ns = kMaxTickNs + 1;
  for (uint64_t tick = 0; tick < 7; ++tick) session.tick(tick);
  EXPECT_EQ(session.read_count, 4);  // at the start and in ticks 0, 2, 6
  EXPECT_EQ(core.log.size(), 3u);
  session.cost_ns = 0;
  for (uint64_t tick = 0; tick < 8; ++tick) session.tick(tick);
  EXPECT_EQ(session.read_count, 5);
}

TEST(NodeSession, reads_more_often_again_when_it_is_quick_for_long) {
  test::Machine machine("");
  aon_core core;
  SlowSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.start(0);
  const auto tick = [&](uint32_t count) {
    const int before = session.read_count;
    for (uint32_t i = 0; i < count; ++i) session.tick(0);
    return session.read_count - before;
  };
  const auto be_slow = [&] {  // two readings: every fourth tick
    session.cost_ns = kMaxTickNs + 1;
    tick(3);
    session.cost_ns = 0;
  };
  be_slow();
  tick(kCalmTicks);
  EXPECT_EQ(tick(8), 4) << "every second one";
  tick(kCalmTicks);
  EXPECT_EQ(tick(8), 8);
  const size_t told = core.log.size();
  be_slow();
  EXPECT_EQ(core.log.size(), told) << "the same is not told twice";
}

class NodeSystem : public aon::test::FolderFixture {};

TEST_F(NodeSystem, reads_below_its_root) {
  std::filesystem::create_directories(path("proc/b"));
  std::filesystem::create_directories(path("proc/a"));
  std::ofstream(path("proc/loadavg")) << "1.0 2.0\n";
  const System system(folder_);
  EXPECT_EQ(system.read("/proc/loadavg").text, "1.0 2.0\n");
  EXPECT_EQ(system.read("/proc/loadavg", 3).text, "1.0");
  EXPECT_EQ(system.read("/proc/none").error_number, ENOENT);
  EXPECT_EQ(system.read("/proc").error_number, EISDIR);
  EXPECT_EQ(system.list("/proc"), (std::vector<std::string>{"a", "b", "loadavg"}));
  EXPECT_TRUE(system.list("/sys").empty());
  EXPECT_TRUE(system.exists("/proc/a"));
  EXPECT_FALSE(system.exists("/sys"));
  EXPECT_EQ(system.paranoid_level(), 2);
}

TEST_F(NodeSystem, a_repeated_file_stays_the_one_that_was_opened) {
  std::ofstream(path("first")) << "1\n";
  const System system(folder_);
  const RepeatedFile file(system, "/first");
  std::ofstream(path("first")) << "22\n";
  EXPECT_EQ(file.read().text, "22\n");
  EXPECT_EQ(file.read().text, "22\n") << "from the start";
  std::filesystem::rename(path("first"), path("second"));
  std::ofstream(path("first")) << "another\n";
  EXPECT_EQ(file.read().text, "22\n");
  const RepeatedFile none(system, "/none");
  EXPECT_EQ(none.read().error_number, ENOENT);
}

TEST_F(NodeSystem, a_repeated_file_is_opened_each_time_where_descriptors_are_scarce) {
  std::ofstream(path("first")) << "1\n";
  const System system(folder_);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{8, before.rlim_max};  // the next one is beyond a quarter
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(system.open("/first"), -EMFILE);
  const RepeatedFile file(system, "/first");
  EXPECT_EQ(file.read().text, "1\n");
  std::filesystem::rename(path("first"), path("second"));
  EXPECT_EQ(file.read().error_number, ENOENT);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(NodeSystem, a_file_that_is_read_again_stays_open) {
  const System system(folder_);
  EXPECT_EQ(system.read_again("/first").error_number, ENOENT);
  std::ofstream(path("first")) << "1\n";
  EXPECT_EQ(system.read_again("/first").text, "1\n");
  std::filesystem::rename(path("first"), path("second"));
  std::ofstream(path("second")) << std::string(5000, 'x') << '\n';
  EXPECT_EQ(system.read_again("/first").text.size(), 5001u) << "beyond a page";
  EXPECT_EQ(system.read_again("/first", 7).text, "xxxxxxx");
}

TEST_F(NodeSystem, a_file_that_is_gone_and_comes_again_is_opened_anew) {
  std::filesystem::create_directory(path("first"));  // opens, and cannot be read: as of /sys
  const System system(folder_);
  EXPECT_EQ(system.read_again("/first").error_number, EISDIR);
  EXPECT_EQ(system.read_again("/first").error_number, EISDIR);
  std::filesystem::remove(path("first"));
  std::ofstream(path("first")) << "2\n";
  EXPECT_EQ(system.read_again("/first").text, "2\n");
}

TEST(NodeClocks, many_cpus_are_read_in_part) {
  std::string text;
  std::set<int> cpus;
  for (int cpu = 0; cpu < 256; ++cpu) {
    cpus.insert(cpu);
    text += "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
            "/cpufreq/scaling_cur_freq = " + std::to_string(1000 + cpu) + "\n";
  }
  test::Machine machine(text);
  aon_core core;
  Output output(&core, &aon::test::fake_core_api());
  Clocks clocks(machine);
  clocks.find(cpus);
  clocks.read(output);
  EXPECT_EQ(core.samples_of(AON_PROCESS_NODE, "frequency-max").at(0).value, 1252e3);
}

TEST(NodeCgroups, one_whose_name_begins_as_the_mounts_is_not_below_it) {
  const char* mount =
      "/proc/self/mountinfo = 1 1 0:30 /docker/ab /sys/fs/cgroup ro - cgroup cgroup rw,memory\n"
      "/sys/fs/cgroup/memory.usage_in_bytes = 1\n"
      "/sys/fs/cgroup/c/memory.usage_in_bytes = 2\n";
  const auto memory_of = [&](const std::string& path) {
    test::Machine machine(mount + ("/proc/7/cgroup = 5:memory:" + path) + "\n");
    aon_core core;
    Output output(&core, &aon::test::fake_core_api());
    Cgroups(machine, 7).read(output);
    const auto samples = core.samples_of(AON_PROCESS_NODE, "cgroup-memory");
    return samples.empty() ? 0 : samples[0].value;
  };
  EXPECT_EQ(memory_of("/docker/ab/c/d"), 2.0);
  EXPECT_EQ(memory_of("/docker/abc/d"), 1.0);
  EXPECT_EQ(memory_of("/docker/ab"), 1.0);
  EXPECT_EQ(memory_of("of no form"), 0.0);
}

TEST(NodeEnergy, a_package_that_cannot_be_read_is_told) {
  const std::string pmu = "/sys/bus/event_source/devices/power/";
  test::Machine machine(pmu + "type = 22\n" + pmu + "cpumask = 0,2\n" + pmu +
                        "format/event = config:0-7\n" + pmu + "events/energy-pkg = event=0x02\n" +
                        pmu +
                        "events/energy-pkg.unit = Joules\n"
                        "/sys/devices/system/cpu/cpu2/topology/physical_package_id = 1\n"
                        "event 22/0x2/0 = 0 1 1\nevent 22/0x2/2 !EACCES\n");
  aon_core core;
  EnergySession session(machine, Output(&core, &aon::test::fake_core_api()));
  const StateText state = session.start(0);
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_NE(state.reason.find("(not read: package-1)"), std::string::npos) << state.reason;
  EXPECT_NE(state.remedy, "");
}

TEST(NodeProcess, is_not_taken_for_another_one_with_its_pid) {
  const std::string stat = "/proc/7/stat = 7 (a) R 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 ";
  test::Machine machine("/proc/self/status = x\n/proc/7/status = VmRSS: 1 kB\n" + stat +
                        "100 1 1\n/proc/7/io = rchar: 10\n> other\n" + stat +
                        "200 1 1\n/proc/7/io = rchar: 99\n");
  aon_core core;
  ProcessSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.start(0);
  session.process_started(1, 7);
  machine.next();
  session.process_ended(1);
  ASSERT_EQ(core.samples_of(1, "io-read").size(), 1u);
  EXPECT_EQ(core.samples_of(1, "io-read")[0].value, 0.0);
}

TEST(NodeProcess, one_that_has_ended_needs_no_remedy) {
  const char* self = "/proc/self/status = x\n";
  const auto state_of = [&](const std::string& text) {
    test::Machine machine(self + text);
    aon_core core;
    ProcessSession session(machine, Output(&core, &aon::test::fake_core_api()));
    session.start(0);
    session.process_started(1, 7);
    EXPECT_EQ(core.states.at(1).state, AON_STATE_OFF);
    return core.states.at(1).reason + "|" + core.states.at(1).remedy;
  };
  const std::string ended = "the process ended before it could be watched|";
  EXPECT_EQ(state_of("/proc/1/status = x\n"), ended);
  EXPECT_EQ(state_of("/proc/7/status !ESRCH\n"), ended);
  for (const char* text : {"", "/proc/7/status !EACCES\n/proc/1/status = x\n"})
    EXPECT_NE(state_of(text).find("hidepid=0"), std::string::npos) << text;
}

TEST(NodeProcess, many_are_read_less_often) {
  std::string text = "/proc/self/status = x\n";
  for (int pid = 100; pid < 140; ++pid) {
    text += "/proc/" + std::to_string(pid) + "/status = VmRSS: 1 kB\n";
  }
  test::Machine machine(text);
  aon_core core;
  ProcessSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.start(0);
  for (uint32_t number = 0; number < 40; ++number) {
    session.process_started(number, static_cast<pid_t>(100 + number));
  }
  for (uint64_t tick = 1; tick <= 6; ++tick) {
    machine.set_now_ns(tick * kProcessPeriodNs);
    session.tick(tick);
  }
  EXPECT_EQ(core.samples_of(0, "memory").size(), 3u);  // at its start and in two of six ticks
}

/// Its wall clock stands still between ticks, and each reading takes as long as it is told.
class SlowMachine : public test::Machine {
 public:
  using Machine::Machine;
  uint64_t now_ns() const override { return clock_ns_ += reading_ns; }
  uint64_t wall_ns() const override { return beat * kProcessPeriodNs + 1000; }
  uint64_t beat = 0;
  uint64_t reading_ns = 0;

 private:
  mutable uint64_t clock_ns_ = 0;
};

struct Beats {
  uint32_t process_count;
  uint64_t first;
};

class NodeProcessBeats : public testing::TestWithParam<Beats> {};

TEST_P(NodeProcessBeats, samples_go_on_after_a_slow_reading_and_a_skipped_beat) {
  std::string text = "/proc/self/status = x\n";
  for (uint32_t i = 0; i < GetParam().process_count; ++i)
    text += "/proc/" + std::to_string(100 + i) + "/status = VmRSS: 1 kB\n";
  SlowMachine machine(text);
  machine.beat = GetParam().first;
  aon_core core;
  ProcessSession session(machine, Output(&core, &aon::test::fake_core_api()));
  session.start(0);
  for (uint32_t number = 0; number < GetParam().process_count; ++number)
    session.process_started(number, static_cast<pid_t>(100 + number));
  const auto samples_of_ticks = [&](int count) {
    const size_t before = core.samples_of(0, "memory").size();
    for (int i = 0; i < count; ++i, ++machine.beat) session.tick(machine.beat);
    return core.samples_of(0, "memory").size() - before;
  };
  machine.reading_ns = kMaxTickNs + 1;
  samples_of_ticks(1);
  machine.reading_ns = 0;
  EXPECT_GE(samples_of_ticks(60), 60 / kMaxStride - 2);
  ++machine.beat;
  EXPECT_GE(samples_of_ticks(60), 60 / kMaxStride - 2);
}

INSTANTIATE_TEST_SUITE_P(Each, NodeProcessBeats,
                         testing::Values(Beats{20, 1000}, Beats{20, 1001}, Beats{64, 1000},
                                         Beats{64, 1001}),
                         [](const auto& one) {
                           return std::to_string(one.param.process_count) + "_from_" +
                                  std::to_string(one.param.first);
                         });

/// The real providers on the real machine; what it does not allow is told, not failed.
class NodeProvider : public testing::TestWithParam<const char*> {};

TEST_P(NodeProvider, works_or_says_why_not) {
  const std::filesystem::path folder = kProviders;
  auto loaded =
      provider::Provider::load(provider::provider_path(folder, GetParam()), AON_HOST_NODE, folder);
  ASSERT_TRUE(loaded) << loaded.error().message;
  aon_core core;
  if (!loaded->start(&core, aon::test::fake_core_api(), "")) {
    EXPECT_EQ(core.states.at(AON_PROCESS_NODE).state, AON_STATE_OFF);
    EXPECT_NE(core.states.at(AON_PROCESS_NODE).reason, "");
    GTEST_SKIP() << GetParam() << ": " << core.states.at(AON_PROCESS_NODE).reason;
  }
  loaded->process_started(3, getpid(), 0);
  for (uint64_t tick = 1; tick < 4; ++tick) loaded->tick(tick);
  loaded->process_ended(3);
  loaded->stop();
  EXPECT_FALSE(core.metrics.empty());
  for (const aon_core::Metric& metric : core.metrics) {
    EXPECT_FALSE(metric.unit.empty()) << metric.name;
    const auto samples = core.samples_of(metric.process, metric.name);
    EXPECT_FALSE(samples.empty()) << metric.name;
    for (size_t i = 1; i < samples.size() && metric.mode == AON_METRIC_ACCUMULATED; ++i) {
      EXPECT_GE(samples[i].value, samples[i - 1].value) << metric.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, NodeProvider,
                         testing::Values("energy", "membw", "network", "node", "process"),
                         [](const auto& one) { return std::string(one.param); });

TEST(NodeRealProcess, counts_the_bytes_that_a_real_process_writes) {
  const std::filesystem::path folder = kProviders;
  auto loaded =
      provider::Provider::load(provider::provider_path(folder, "process"), AON_HOST_NODE, folder);
  ASSERT_TRUE(loaded) << loaded.error().message;
  aon_core core;
  ASSERT_TRUE(loaded->start(&core, aon::test::fake_core_api(), ""));
  loaded->process_started(3, getpid(), 0);
  const std::string text(1 << 20, 'x');
  char name[] = "/tmp/aon-node-XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  loaded->tick(1);
  loaded->stop();
  EXPECT_EQ(core.states.at(3).state, AON_STATE_ON) << core.states.at(3).reason;
  EXPECT_GE(core.samples_of(3, "io-written").back().value, 1 << 20);
  EXPECT_GT(core.samples_of(3, "memory").back().value, 1 << 20);
}

}  // namespace
}  // namespace aon::node
