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
  Counter make() { return Counter(fake_kernel(), cycles(), Probe{true, false, true, 0}); }
};

TEST_F(Counters, follow_threads_but_not_children) {
  Counter counter = make();
  EXPECT_EQ(counter.open({7, 8}), 0);
  ASSERT_EQ(fake.open.size(), 2u);
  const perf_event_attr& attr = fake.open[100].attr;
  EXPECT_EQ(attr.type, static_cast<uint32_t>(PERF_TYPE_HARDWARE));
  EXPECT_EQ(attr.inherit, 1u);
  EXPECT_EQ(attr.inherit_thread, 1u);
  EXPECT_EQ(attr.disabled, 0u);
  EXPECT_EQ(fake.open[101].pid, 8);
}

TEST_F(Counters, sum_up_threads) {
  Counter counter = make();
  EXPECT_EQ(counter.open({7, 8}), 0);
  fake.values[100] = {10, 100 * kMs, 100 * kMs};
  fake.values[101] = {5, 20 * kMs, 20 * kMs};
  const std::optional<Reading> reading = counter.read();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 15.0);
  EXPECT_EQ(reading->enabled_ns, 120 * kMs);
  EXPECT_EQ(reading->running_ns, 120 * kMs);
}

TEST_F(Counters, scale_each_interval_by_its_own_share) {
  Counter counter = make();
  EXPECT_EQ(counter.open({7}), 0);
  fake.values[100] = {1000, 100 * kMs, 50 * kMs};
  EXPECT_EQ(counter.read()->value, 2000.0);
  fake.values[100] = {1100, 200 * kMs, 60 * kMs};  // 100 more in a tenth of the time
  const std::optional<Reading> reading = counter.read();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 3000.0);
  EXPECT_EQ(reading->enabled_ns, 200 * kMs);
  EXPECT_EQ(reading->running_ns, 60 * kMs);
}

TEST_F(Counters, refuse_to_scale_less_than_5_ms) {
  Counter counter = make();
  EXPECT_EQ(counter.open({7}), 0);
  fake.values[100] = {100, 100 * kMs, 5 * kMs - 1};
  EXPECT_FALSE(counter.read());
  fake.values[100] = {120, 200 * kMs, 5 * kMs};  // together with the refused interval
  const std::optional<Reading> reading = counter.read();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->value, 120.0 * 40);
}

TEST_F(Counters, take_short_times_that_need_no_scaling) {
  Counter counter = make();
  EXPECT_EQ(counter.open({7}), 0);
  fake.values[100] = {3, 1000, 1000};
  EXPECT_EQ(counter.read()->value, 3.0);
  EXPECT_EQ(counter.read()->value, 3.0);
}

TEST_F(Counters, forgive_a_thread_that_has_ended) {
  fake.refuse = [](const perf_event_attr&, pid_t pid) { return pid == 8 ? -ESRCH : 0; };
  Counter counter = make();
  EXPECT_EQ(counter.open({7, 8, 9}), 0);
  EXPECT_EQ(fake.open.size(), 2u);
}

TEST_F(Counters, report_the_first_other_error) {
  fake.refuse = [](const perf_event_attr&, pid_t pid) { return pid == 8 ? -EMFILE : 0; };
  Counter counter = make();
  EXPECT_EQ(counter.open({7, 8}), EMFILE);
  EXPECT_TRUE(counter.is_open());
}

TEST_F(Counters, move_without_closing) {
  std::vector<Counter> counters;
  for (int i = 0; i < 5; ++i) {
    Counter counter = make();
    EXPECT_EQ(counter.open({7}), 0);
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
