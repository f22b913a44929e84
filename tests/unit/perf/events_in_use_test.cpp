#include "plugins/perf/events_in_use.h"

#include <gtest/gtest.h>

#include "plugins/perf/state.h"
#include "tests/unit/perf/fake_kernel.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;

class PerfEventsInUse : public testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  static int open_count(uint64_t config) {
    int count = 0;
    for (const auto& [fd, open] : fake.open) {
      count += open.attr.type == PERF_TYPE_SOFTWARE && open.attr.config == config ? 1 : 0;
    }
    return count;
  }
};

TEST_F(PerfEventsInUse, are_one_of_each_kind_of_software_that_counts_nothing) {
  const EventsInUse in_use(fake_kernel(), event_types());
  for (const EventType& type : event_types()) {
    if (is_hardware(type)) continue;
    const bool is_left_out =
        is_software(type, PERF_COUNT_SW_TASK_CLOCK) || is_software(type, PERF_COUNT_SW_PAGE_FAULTS);
    EXPECT_EQ(open_count(type.config), is_left_out ? 0 : 1) << type.name;
  }
  for (const auto& [fd, open] : fake.open) {
    EXPECT_EQ(open.attr.type, uint32_t{PERF_TYPE_SOFTWARE});
    EXPECT_TRUE(open.attr.disabled);
    EXPECT_FALSE(open.attr.inherit);
    EXPECT_EQ(open.pid, 0);
  }
}

TEST_F(PerfEventsInUse, stay_while_events_are_probed_and_go_with_the_provider) {
  {
    const EventsInUse in_use(fake_kernel(), event_types());
    const size_t before = fake.open.size();
    EXPECT_GT(before, 0u);
    probe_all(fake_kernel());
    EXPECT_EQ(fake.open.size(), before);
  }
  EXPECT_TRUE(fake.open.empty());
}

TEST_F(PerfEventsInUse, that_cannot_be_opened_are_none) {
  fake.refuse = [](const perf_event_attr&, pid_t) { return -EACCES; };
  const EventsInUse in_use(fake_kernel(), event_types());
  EXPECT_TRUE(fake.open.empty());
}

}  // namespace
}  // namespace aon::perf
