#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "plugins/perf/sampling/sampler.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/perf/ring_writer.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using test::RingWriter;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kProcess = 3;
constexpr pid_t kPid = 70;

class PerfSampler : public testing::Test {
 protected:
  void SetUp() override {
    fake = {};
    fake.now_ns = 50;
    core_.ticks = 100;
    fake.tasks[kPid] = {kPid};
    fake.files["/proc/70/maps"] = "1000-9000 r-xp 00000000 08:01 12 /nowhere/program\n";
    fake.files["/proc/70/task/70/comm"] = "solver\n";
  }
  void TearDown() override {
    sampler_.reset();
    EXPECT_TRUE(fake.open.empty()) << "descriptors left open";
  }
  Sampler& start() {
    const SamplingProbe probe = probe_sampling(fake_kernel(), 100, "fp", may_use_timers_);
    sampler_.emplace(
        SamplingHost{&core_, &aon::test::fake_core_api(), &fake_kernel(), *probe.event, 0},
        probe.obstacle);
    sampler_->process_started(kProcess, kPid);
    return *sampler_;
  }
  RingWriter ring(pid_t tid) { return {fake.rings.at(tid).data(), SamplingEvent().ring_bytes()}; }
  void tick(uint64_t now_ns) {
    fake.now_ns = now_ns;
    core_.ticks = now_ns * 2;
    sampler_->tick(core_.ticks);
  }
  std::vector<uint64_t> times() const {
    std::vector<uint64_t> times;
    for (const aon_core::PutRecord& record : core_.records)
      times.push_back(record.head.start_ticks);
    return times;
  }
  size_t count(DefinitionType type) const {
    return static_cast<size_t>(
        std::count_if(core_.definitions.begin(), core_.definitions.end(),
                      [&](const auto& d) { return d.type == static_cast<uint32_t>(type); }));
  }

  aon_core core_;
  bool may_use_timers_ = false;
  std::optional<Sampler> sampler_;
};

/// Where perf is forbidden and the user asked for timers.
class PerfTimers : public PerfSampler {
 protected:
  void SetUp() override {
    PerfSampler::SetUp();
    fake.refuse = [](const perf_event_attr&, pid_t) { return -EPERM; };
    may_use_timers_ = true;
  }
  void note(int32_t tid, uint64_t time_ns, std::vector<uint64_t> frames, uint64_t lost_count = 0) {
    aon_noted_stack stack = {time_ns, tid, static_cast<uint32_t>(frames.size()), lost_count, {}};
    std::copy(frames.begin(), frames.end(), stack.frames);
    core_.noted_stacks[kProcess].push_back(stack);
  }
};

TEST_F(PerfTimers, stacks_of_the_process_become_samples) {
  start();
  EXPECT_EQ(core_.stack_rates_hz.at(kProcess), 100u);
  note(kPid, 500, {0x2000, 0x3000});
  note(kPid, UINT64_MAX, {0x2000, 0x3000});  // a broken ring says so
  tick(1000);
  ASSERT_THAT(times(), ElementsAre(1000u, 2000u));
  EXPECT_EQ(core_.records[0].head.kind, RecordKind::kCallSample);
  EXPECT_EQ(core_.records[0].head.a32, static_cast<uint32_t>(kPid));
  EXPECT_EQ(core_.records[0].head.a64, 10'000'000u);
  EXPECT_EQ(count(DefinitionType::kCallPaths), 1u);
  EXPECT_EQ(count(DefinitionType::kTaskName), 1u);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("perf_event_open is forbidden"));
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("by timers"));
}

TEST_F(PerfTimers, what_was_mapped_later_is_looked_up) {
  start();
  fake.files["/proc/70/maps"] += "20000-30000 r-xp 00000000 08:01 13 /nowhere/later.so\n";
  note(kPid, 500, {0x21000, 0x3000});
  tick(1000);
  EXPECT_EQ(count(DefinitionType::kMapping), 2u);
}

TEST_F(PerfTimers, losses_are_counted) {
  start();
  note(kPid, 500, {}, 4);
  tick(1000);
  EXPECT_EQ(core_.lost.at(kProcess), 4u);
}

TEST_F(PerfTimers, follow_the_budget) {
  start();
  sampler_->throttle(4);
  EXPECT_EQ(core_.stack_rates_hz.at(kProcess), 25u);
  sampler_->throttle(0);
  EXPECT_EQ(core_.stack_rates_hz.at(kProcess), 1u);
}

TEST_F(PerfTimers, are_named_as_the_remedy_where_nobody_asked_for_them) {
  const SamplingProbe probe = probe_sampling(fake_kernel(), 100, "fp");
  EXPECT_FALSE(probe.event);
  EXPECT_THAT(probe.obstacle.remedy, HasSubstr("--sampling-fallback=timer"));
}

TEST_F(PerfSampler, timers_of_the_process_rest_where_perf_works) {
  start();
  EXPECT_EQ(core_.stack_rates_hz.at(kProcess), 0u);
}

TEST_F(PerfSampler, a_sample_becomes_a_record_with_a_path) {
  start();
  ring(kPid).sample(kPid, 500, {0x2000, 0x3000}, 10);
  tick(1000);
  ASSERT_EQ(core_.records.size(), 1u);
  const RecordHead& head = core_.records[0].head;
  EXPECT_EQ(head.kind, RecordKind::kCallSample);
  EXPECT_EQ(head.a32, static_cast<uint32_t>(kPid));
  EXPECT_EQ(head.a64, 10u);
  EXPECT_EQ(head.id, 1u);
  EXPECT_EQ(core_.records[0].stream, AON_CALL_SAMPLES);
  EXPECT_EQ(count(DefinitionType::kCallPaths), 1u);
  EXPECT_EQ(count(DefinitionType::kMapping), 1u);
  EXPECT_EQ(count(DefinitionType::kTaskName), 1u);
  EXPECT_EQ(count(DefinitionType::kSampling), 1u);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_ON);
}

TEST_F(PerfSampler, samples_of_all_threads_are_put_in_order_of_time) {
  fake.tasks[kPid] = {kPid, kPid + 1};
  start();
  tick(100);
  ring(kPid).sample(kPid, 300, {0x2000});
  ring(kPid).sample(kPid, 700, {0x2000});
  ring(kPid + 1).sample(kPid + 1, 200, {0x2000});
  ring(kPid + 1).sample(kPid + 1, 400, {0x2000});
  tick(500);  // 700 waits: another ring might still have 600
  EXPECT_THAT(times(), ElementsAre(400u, 600u, 800u));
  tick(1000);
  EXPECT_THAT(times(), ElementsAre(400u, 600u, 800u, 1400u));
}

TEST_F(PerfSampler, threads_are_found_by_the_records_of_others) {
  start();
  fake.tasks[kPid] = {kPid, kPid + 5};
  ring(kPid).task(PERF_RECORD_FORK, kPid, kPid + 5);
  ring(kPid).task(PERF_RECORD_FORK, kPid + 9, kPid + 9);  // a child process
  tick(100);
  EXPECT_EQ(fake.open.size(), 2u);
  ring(kPid + 5).sample(kPid + 5, 150, {0x2000});
  ring(kPid + 5).task(PERF_RECORD_EXIT, kPid, kPid + 5);
  fake.tasks[kPid] = {kPid};
  tick(200);
  EXPECT_EQ(core_.records.size(), 1u) << "sampled before it ended";
  EXPECT_EQ(fake.open.size(), 1u);
  EXPECT_EQ(fake.unmapped_count, 1);
}

TEST_F(PerfSampler, the_rings_of_a_dead_process_are_read_to_the_end) {
  start();
  ring(kPid).sample(kPid, 500, {0x2000});
  sampler_->process_ended(kProcess);
  EXPECT_EQ(core_.records.size(), 1u);
  EXPECT_TRUE(fake.open.empty());
}

TEST_F(PerfSampler, what_the_kernel_lost_is_counted) {
  start();
  ring(kPid).sample(kPid, 60, {0x2000});
  tick(100);
  ring(kPid).lost(7);
  tick(200);
  EXPECT_EQ(core_.lost[kProcess], 7u);
  ASSERT_EQ(core_.records.size(), 2u);
  EXPECT_EQ(core_.records[1].head.kind, RecordKind::kLost) << "where it happened";
  EXPECT_EQ(core_.records[1].head.a64, 7u);
  EXPECT_EQ(core_.records[1].head.start_ticks, 120u);
  EXPECT_EQ(core_.records[1].head.duration_ticks, 280u);
  EXPECT_NE(core_.records[1].head.flags & kWideDuration, 0);
}

TEST_F(PerfSampler, code_that_replaces_other_code_has_paths_of_its_own) {
  start();
  ring(kPid).sample(kPid, 10, {0x2000});
  ring(kPid).mapping(0x1000, 0x8000, 0, "/nowhere/other", 15);
  ring(kPid).sample(kPid, 20, {0x2000});
  tick(100);
  ASSERT_EQ(core_.records.size(), 2u);
  EXPECT_NE(core_.records[0].head.id, core_.records[1].head.id);
  EXPECT_EQ(count(DefinitionType::kMapping), 2u);
}

TEST_F(PerfSampler, what_another_thread_mapped_is_known_to_all_at_its_time) {
  fake.tasks[kPid] = {kPid, kPid + 1};
  start();
  ring(kPid).sample(kPid, 60, {0xa000});  // nothing is there yet
  ring(kPid).sample(kPid, 80, {0xa000});
  ring(kPid + 1).mapping(0xa000, 0x1000, 0, "/nowhere/plugin", 70);
  tick(100);
  ASSERT_EQ(core_.records.size(), 2u);
  EXPECT_NE(core_.records[0].head.id, core_.records[1].head.id);
  EXPECT_EQ(count(DefinitionType::kMapping), 1u);
}

TEST_F(PerfSampler, the_budget_lowers_the_rate_and_takes_it_back) {
  start();
  sampler_->throttle(4);
  EXPECT_EQ(fake.periods[kPid], 25u) << "of 100 Hz";
  sampler_->throttle(0);
  EXPECT_EQ(fake.periods[kPid], 1u) << "an event that is off would tell no more of threads";
  sampler_->throttle(1);
  EXPECT_EQ(fake.periods[kPid], 100u);
  EXPECT_EQ(count(DefinitionType::kSampling), 4u) << "each change is in the trace";
}

TEST_F(PerfSampler, the_lowest_rate_is_one_a_second) {
  start();
  sampler_->throttle(1024);
  for (uint32_t i = 0; i < 10; ++i) tick(10 * i);
  EXPECT_EQ(core_.states.at(kProcess).reason,
            "the budget lowered the rate from 100 to 1 Hz, the lowest");
  sampler_->throttle(0);
  for (const auto& definition : core_.definitions) {
    if (definition.type != static_cast<uint32_t>(DefinitionType::kSampling)) continue;
    SamplingDefinition sampling{};
    std::memcpy(&sampling, definition.payload.data(), sizeof(sampling));
    EXPECT_GE(sampling.rate_hz, 1u);
  }
}

/// The kernel goes on telling the clock's first period.
TEST_F(PerfSampler, samples_of_a_clock_stand_for_the_time_of_the_rate_they_came_at) {
  constexpr uint64_t kToldNs = 10'000'000;
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.type == PERF_TYPE_HARDWARE ? -ENOENT : 0;
  };
  start();
  ring(kPid).sample(kPid, 10, {0x2000}, kToldNs);
  sampler_->throttle(4);  // at 50
  ring(kPid).sample(kPid, 60, {0x2000}, kToldNs);
  tick(100);
  ring(kPid).sample(kPid, 110, {0x2000}, kToldNs);
  fake.now_ns = 120;
  sampler_->throttle(1);
  ring(kPid).sample(kPid, 119, {0x2000}, kToldNs);
  ring(kPid).sample(kPid, 130, {0x2000}, kToldNs);
  tick(200);
  std::vector<uint64_t> periods;
  for (const aon_core::PutRecord& record : core_.records) periods.push_back(record.head.a64);
  EXPECT_THAT(periods,
              ElementsAre(10'000'000u, 40'000'000u, 40'000'000u, 40'000'000u, 10'000'000u));
}

TEST_F(PerfSampler, samples_of_cycles_keep_the_period_that_the_kernel_tells) {
  start();
  ring(kPid).sample(kPid, 10, {0x2000}, 4711);
  sampler_->throttle(4);
  ring(kPid).sample(kPid, 60, {0x2000}, 1000);
  tick(100);
  ASSERT_EQ(core_.records.size(), 2u);
  EXPECT_EQ(core_.records[0].head.a64, 4711u);
  EXPECT_EQ(core_.records[1].head.a64, 1000u);
}

/// Two threads, one of which leaves its CPU often; seconds of ticks.
class SwitchingThreads : public PerfSampler {
 protected:
  static constexpr pid_t kBusy = kPid + 1;

  void SetUp() override {
    PerfSampler::SetUp();
    fake.tasks[kPid] = {kPid, kBusy};
    fake.files["/proc/cpuinfo"] = "flags : fpu hypervisor sse";
    set_turns(kPid, 100);
    set_turns(kBusy, 9000);
    start();
    second();
    set_turns(kPid, 110);
    set_turns(kBusy, 9000 + 20'000);
  }
  static void set_turns(pid_t tid, uint64_t count) {
    fake.files["/proc/70/task/" + std::to_string(tid) + "/schedstat"] =
        "12345 678 " + std::to_string(count) + "\n";
  }
  void second() {
    for (int i = 0; i < 10; ++i) tick(now_ns_ += 100'000'000);
  }
  static bool is_watched(pid_t tid) {
    return std::any_of(fake.open.begin(), fake.open.end(),
                       [&](const auto& open) { return open.second.pid == tid; });
  }

  uint64_t now_ns_ = 0;
};

TEST_F(SwitchingThreads, each_switch_costs_the_program_something) {
  EXPECT_EQ(core_.cost_ns, 0u);  // of what was before nobody knows how much
  second();
  EXPECT_EQ(core_.cost_ns, 20'010u * 2000);
  second();
  EXPECT_EQ(core_.cost_ns, 20'010u * 2000);
}

TEST_F(SwitchingThreads, those_that_switch_too_often_are_not_watched) {
  second();
  sampler_->throttle(2);
  EXPECT_FALSE(is_watched(kBusy));
  EXPECT_TRUE(is_watched(kPid));
  EXPECT_EQ(fake.periods.count(kPid), 0u) << "it is not samples that cost";
  const uint64_t cost_ns = core_.cost_ns;
  set_turns(kBusy, 9000 + 50'000);
  set_turns(kPid, 111);
  second();
  EXPECT_FALSE(is_watched(kBusy));
  EXPECT_EQ(core_.cost_ns, cost_ns + 2000);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("1 thread was not sampled for a time"));
}

TEST_F(SwitchingThreads, what_was_sampled_before_is_kept) {
  second();
  ring(kBusy).sample(kBusy, now_ns_ + 10, {0x2000});
  sampler_->throttle(2);
  tick(now_ns_ + 100);
  EXPECT_EQ(core_.records.size(), 1u);
}

TEST_F(SwitchingThreads, are_watched_again_where_there_is_room) {
  second();
  sampler_->throttle(2);
  sampler_->throttle(1);
  second();
  EXPECT_TRUE(is_watched(kBusy));
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED) << "samples lack that time";
}

TEST_F(SwitchingThreads, are_watched_again_when_they_have_become_calm) {
  second();
  sampler_->throttle(4);
  second();  // no turn in it
  sampler_->throttle(2);
  second();
  EXPECT_TRUE(is_watched(kBusy));
}

TEST_F(SwitchingThreads, samples_go_where_they_are_what_costs) {
  for (uint64_t i = 0; i < 100; ++i) ring(kPid).sample(kPid, now_ns_ + i, {0x2000});
  set_turns(kBusy, 9000 + 100);
  second();
  sampler_->throttle(2);
  EXPECT_EQ(fake.periods[kPid], 50u);
}

TEST_F(PerfSampler, each_sample_costs_the_program_something) {
  fake.files["/proc/cpuinfo"] = "flags : fpu hypervisor sse";
  start();
  ring(kPid).sample(kPid, 10, {0x2000});
  ring(kPid).sample(kPid, 20, {0x2000});
  tick(100);
  EXPECT_EQ(core_.cost_ns, 40'000u);
}

TEST_F(PerfSampler, a_thread_that_cannot_be_watched_is_told) {
  fake.tasks[kPid] = {kPid, kPid + 1};
  fake.refuse = [](const perf_event_attr&, pid_t tid) { return tid == kPid + 1 ? -EMFILE : 0; };
  start();
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("1 thread is not sampled"));
  EXPECT_THAT(core_.states.at(kProcess).remedy, HasSubstr("ulimit -n"));
}

TEST_F(PerfSampler, threads_that_were_not_watched_are_told_at_the_end_too) {
  fake.refuse = [](const perf_event_attr&, pid_t tid) { return tid <= kPid ? 0 : -EMFILE; };
  start();
  fake.tasks[kPid] = {kPid, kPid + 1, kPid + 2};
  ring(kPid).task(PERF_RECORD_FORK, kPid, kPid + 1);
  tick(100);
  fake.tasks[kPid] = {};
  ring(kPid).task(PERF_RECORD_EXIT, kPid, kPid);
  sampler_->process_ended(kProcess);
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("2 threads are not sampled"));
}

TEST_F(PerfSampler, takes_a_smaller_ring_where_memory_may_not_be_locked) {
  fake.most_ring_bytes = SamplingEvent().ring_bytes() / kSmallerRing;
  start();
  EXPECT_EQ(core_.states.at(kProcess).state, AON_STATE_DEGRADED);
  EXPECT_THAT(core_.states.at(kProcess).reason, HasSubstr("whole rings"));
  fake.rings.clear();
  fake.most_ring_bytes = 0;
  sampler_->process_started(kProcess + 1, kPid);
  EXPECT_EQ(core_.states.at(kProcess + 1).state, AON_STATE_OFF);
  EXPECT_THAT(core_.states.at(kProcess + 1).remedy, HasSubstr("perf_event_mlock_kb"));
}

TEST_F(PerfSampler, a_process_that_is_gone_is_no_error) {
  start();
  sampler_->process_started(9, 999);
  EXPECT_EQ(core_.states.at(9).state, AON_STATE_OFF);
  EXPECT_THAT(core_.states.at(9).reason, HasSubstr("ended before"));
}

TEST_F(PerfSampler, copies_of_stacks_are_unwound_by_the_core) {
  const SamplingProbe probe = probe_sampling(fake_kernel(), 100, "dwarf");
  const perf_event_attr attr = probe.event->attributes(100);
  EXPECT_NE(attr.sample_type & PERF_SAMPLE_STACK_USER, 0u);
  EXPECT_EQ(__builtin_popcountll(attr.sample_regs_user), static_cast<int>(kRegisterCount));
  sampler_.emplace(
      SamplingHost{&core_, &aon::test::fake_core_api(), &fake_kernel(), *probe.event, 0},
      probe.obstacle);
  sampler_->process_started(kProcess, kPid);
  std::vector<uint8_t> body = RingWriter::sample_body(kPid, 10, {}, 5);
  RingWriter::append(&body, uint64_t{2});  // 64-bit registers
  for (uint64_t i = 0; i < kRegisterCount; ++i) RingWriter::append(&body, 0x2000 + i);
  RingWriter::append(&body, uint64_t{64});
  body.resize(body.size() + 64, 0x11);
  RingWriter::append(&body, uint64_t{40});  // of which the thread's stack has so many
  RingWriter(fake.rings.at(kPid).data(), probe.event->ring_bytes()).put(PERF_RECORD_SAMPLE, body);
  tick(100);
  ASSERT_EQ(core_.stacks.size(), 1u);
  EXPECT_EQ(core_.stacks[0].bx, 0x2000u);
  EXPECT_EQ(core_.stacks[0].sp, 0x2002u);
  EXPECT_EQ(core_.stacks[0].ip, 0x2003u);
  EXPECT_EQ(core_.stacks[0].r15, 0x2007u);
  EXPECT_EQ(core_.stacks[0].byte_count, 40u);
  ASSERT_EQ(core_.records.size(), 1u);
  EXPECT_EQ(core_.records[0].head.id, 1u) << "two frames";
}

/// The kernel of this machine.
class RealSampler : public testing::Test {};

TEST_F(RealSampler, samples_of_a_process_that_was_killed_are_there) {
  const SamplingProbe probe = probe_sampling(real_kernel(), 500, "fp");
  if (!probe.event) GTEST_SKIP() << probe.obstacle.reason;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    volatile uint64_t turns = 0;
    for (;;) turns = turns + 1;
  }
  aon_core core;
  Sampler sampler({&core, &aon::test::fake_core_api(), &real_kernel(), *probe.event, 0}, {});
  sampler.process_started(kProcess, child);
  ASSERT_EQ(core.states.at(kProcess).state, AON_STATE_ON) << core.states.at(kProcess).reason;
  for (int turn = 0; core.records.empty() && turn < 1000; ++turn) {
    usleep(20000);
    core.ticks += 1000;
    sampler.tick(core.ticks);
  }
  const size_t before = core.records.size();
  ASSERT_GT(before, 0u) << "no sample in 20 s";
  // At least one more period of CPU time, unseen by any tick.
  const auto cpu_time = [&] {
    timespec used{};
    clockid_t clock{};
    clock_getcpuclockid(child, &clock);
    clock_gettime(clock, &used);
    return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000u +
           static_cast<uint64_t>(used.tv_nsec);
  };
  const uint64_t start_ns = cpu_time();
  while (cpu_time() < start_ns + 50'000'000) usleep(5000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  sampler.process_ended(kProcess);
  EXPECT_GT(core.records.size(), before);
}

}  // namespace
}  // namespace aon::perf
