#include "plugins/perf/counters.h"

#include <gtest/gtest.h>

#include "tests/unit/perf/fake_kernel.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;

constexpr uint64_t kMs = 1'000'000;
const EventType& cycles() { return event_types()[6]; }

class Counters : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  void TearDown() override { EXPECT_TRUE(fake.open.empty()) << "descriptors left open"; }
  static CounterGroup make() { return group_of({&cycles()}); }
  static CounterGroup group_of(std::vector<const EventType*> types) {
    std::vector<CounterGroup::Event> events;
    for (const EventType* type : types) events.push_back({type, Probe{true, false, true, 0}});
    return CounterGroup(fake_kernel(), std::move(events));
  }
  static int open(CounterGroup* group, std::vector<pid_t> tasks) {
    group->open(tasks);
    return group->events()[0].error_number;
  }
};

TEST_F(Counters, follow_threads_but_not_children) {
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7, 8}), 0);
  ASSERT_EQ(fake.open.size(), 2u);
  const perf_event_attr& attr = fake.open[100].attr;
  EXPECT_EQ(attr.type, static_cast<uint32_t>(PERF_TYPE_HARDWARE));
  EXPECT_EQ(attr.inherit, 1u);
  EXPECT_EQ(attr.inherit_thread, 1u);
  EXPECT_EQ(attr.disabled, 0u);
  EXPECT_EQ(fake.open[101].pid, 8);
}

TEST_F(Counters, sum_up_threads) {
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7, 8}), 0);
  fake.values[100] = {10, 100 * kMs, 100 * kMs};
  fake.values[101] = {5, 20 * kMs, 20 * kMs};
  const std::optional<Reading> reading = counter.read()[0];
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 15.0);
  EXPECT_EQ(reading->enabled_ns, 120 * kMs);
  EXPECT_EQ(reading->running_ns, 120 * kMs);
}

TEST_F(Counters, scale_each_interval_by_its_own_share) {
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7}), 0);
  fake.values[100] = {1000, 100 * kMs, 50 * kMs};
  EXPECT_EQ(counter.read()[0]->value, 2000.0);
  fake.values[100] = {1100, 200 * kMs, 60 * kMs};  // 100 more in a tenth of the time
  const std::optional<Reading> reading = counter.read()[0];
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 3000.0);
  EXPECT_EQ(reading->enabled_ns, 200 * kMs);
  EXPECT_EQ(reading->running_ns, 60 * kMs);
}

TEST_F(Counters, refuse_to_scale_less_than_5_ms) {
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7}), 0);
  fake.values[100] = {100, 100 * kMs, 5 * kMs - 1};
  EXPECT_FALSE(counter.read()[0]);
  fake.values[100] = {120, 200 * kMs, 5 * kMs};  // together with the refused interval
  const std::optional<Reading> reading = counter.read()[0];
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 120.0 * 40);
}

TEST_F(Counters, take_short_times_that_need_no_scaling) {
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7}), 0);
  fake.values[100] = {3, 1000, 1000};
  EXPECT_EQ(counter.read()[0]->value, 3.0);
  EXPECT_EQ(counter.read()[0]->value, 3.0);
}

TEST_F(Counters, forgive_a_thread_that_has_ended) {
  fake.refuse = [](const perf_event_attr&, pid_t pid) { return pid == 8 ? -ESRCH : 0; };
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7, 8, 9}), 0);
  EXPECT_EQ(fake.open.size(), 2u);
}

/// Linux 6.18 says ENODEV of a group whose first event went with its thread.
TEST_F(Counters, forgive_a_thread_that_ends_between_two_events) {
  const EventType& instructions = event_types()[7];
  fake.refuse = [&](const perf_event_attr& attr, pid_t pid) {
    return pid == 8 && attr.config == instructions.config ? -ENODEV : 0;
  };
  CounterGroup group = group_of({&cycles(), &instructions});
  EXPECT_EQ(open(&group, {7, 8}), 0);
  EXPECT_EQ(group.events()[1].error_number, 0);
  EXPECT_EQ(fake.open.size(), 3u);
}

TEST_F(Counters, report_the_first_other_error) {
  fake.refuse = [](const perf_event_attr&, pid_t pid) { return pid == 8 ? -EMFILE : 0; };
  CounterGroup counter = make();
  EXPECT_EQ(open(&counter, {7, 8}), EMFILE);
  EXPECT_TRUE(counter.is_open());
}

TEST_F(Counters, of_a_group_are_read_at_once) {
  CounterGroup counters = group_of({&event_types()[0], &event_types()[1], &event_types()[2]});
  EXPECT_EQ(open(&counters, {7, 8}), 0);
  ASSERT_EQ(fake.open.size(), 6u);
  EXPECT_EQ(fake.open[100].group, kNoGroup);
  EXPECT_EQ(fake.open[102].group, 100);
  EXPECT_EQ(fake.open[105].group, 103);
  for (int fd = 100; fd < 106; ++fd) fake.values[fd] = {static_cast<uint64_t>(fd), 50, 50};
  const auto readings = counters.read();
  ASSERT_EQ(readings.size(), 3u);
  EXPECT_EQ(readings[0]->value, 100.0 + 103);
  EXPECT_EQ(readings[2]->value, 102.0 + 105);
  EXPECT_EQ(readings[2]->enabled_ns, 100u);
  EXPECT_EQ(fake.read_count, 2) << "one for each thread";
}

TEST_F(Counters, of_a_group_stand_for_themselves_where_one_is_refused) {
  fake.refuse = [](const perf_event_attr& attr, pid_t pid) {
    return pid == 8 && attr.config == event_types()[1].config ? -EMFILE : 0;
  };
  CounterGroup counters = group_of({&event_types()[0], &event_types()[1], &event_types()[2]});
  counters.open(std::vector<pid_t>{7, 8});
  EXPECT_EQ(counters.events()[1].error_number, EMFILE);
  for (auto& [fd, one] : fake.open) fake.values[fd] = {one.attr.config + 1, 50, 50};
  const auto readings = counters.read();
  for (size_t i = 0; i < 3; ++i) {
    const double each = static_cast<double>(event_types()[i].config + 1);
    EXPECT_EQ(readings[i]->value, i == 1 ? each : 2 * each);
  }
}

TEST_F(Counters, are_read_one_by_one_where_groups_are_refused) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return (attr.read_format & PERF_FORMAT_GROUP) != 0 ? -EINVAL : 0;
  };
  EXPECT_FALSE(probe_groups(fake_kernel(), event_types()[0], Probe{true, false, true, 0}));
  fake.refuse = [](const perf_event_attr&, pid_t) { return 0; };
  EXPECT_TRUE(probe_groups(fake_kernel(), event_types()[0], Probe{true, false, true, 0}));
}

TEST_F(Counters, move_without_closing) {
  std::vector<CounterGroup> counters;
  for (int i = 0; i < 5; ++i) {
    CounterGroup counter = make();
    EXPECT_EQ(open(&counter, {7}), 0);
    counters.push_back(std::move(counter));
  }
  EXPECT_EQ(fake.open.size(), 5u);
}

TEST_F(Counters, probe_older_kernels_and_less_permission) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    if (attr.inherit_thread != 0) return -EINVAL;
    return attr.exclude_kernel != 0 ? 0 : -EACCES;
  };
  const Probe how = probe(fake_kernel(), cycles());
  EXPECT_TRUE(how.available);
  EXPECT_TRUE(how.exclude_kernel);
  EXPECT_FALSE(how.threads_only);
}

TEST_F(Counters, do_not_count_kernel_side_events_in_user_mode) {
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.exclude_kernel != 0 ? 0 : -EACCES;
  };
  for (const EventType& type : event_types()) {
    EXPECT_EQ(probe(fake_kernel(), type).available, !type.in_kernel) << type.name;
  }
}

TEST_F(Counters, end_a_probe_that_fails_in_every_way) {
  fake.refuse = [](const perf_event_attr&, pid_t) { return -EINVAL; };
  EXPECT_EQ(probe(fake_kernel(), cycles()).error_number, EINVAL);
  fake.refuse = [](const perf_event_attr&, pid_t) { return -ENOENT; };
  EXPECT_EQ(probe(fake_kernel(), cycles()).error_number, ENOENT);
}

}  // namespace
}  // namespace aon::perf
