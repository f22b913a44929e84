#include "plugins/perf/chosen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plugins/perf/session.h"
#include "plugins/perf/state.h"
#include "tests/unit/perf/fake_kernel.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::perf {
namespace {

using test::fake;
using test::fake_kernel;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr char kFive[] =
    "0/0x0/0x0/0x0/4/cycles,4/0x76/0x1/0x2/6/zen::a:u,0/0x1/0x0/0x0/4/instructions,"
    "0/0x5/0x0/0x0/4/branch-misses,4/0x77/0x0/0x0/4/zen::b";

std::vector<std::string> names_of(const ChosenEvents& events) {
  std::vector<std::string> names;
  for (const EventType& type : events.types()) names.emplace_back(type.name);
  return names;
}

TEST(PerfChosen, is_the_default_set_when_nothing_was_chosen) {
  const ChosenEvents events("");
  EXPECT_TRUE(events.is_default());
  EXPECT_EQ(events.types().size(), event_types().size());
}

TEST(PerfChosen, takes_the_place_of_the_hardware_events) {
  const ChosenEvents events("4/0x76/0x1/0x2/6/zen::a:u,1/0x2/0x0/0x0/4/page-faults");
  EXPECT_FALSE(events.is_default());
  EXPECT_THAT(names_of(events), Contains("task-clock"));
  EXPECT_THAT(names_of(events), Not(Contains("cycles")));
  const std::vector<std::string> names = names_of(events);
  EXPECT_EQ(std::count(names.begin(), names.end(), "page-faults"), 1);
  const EventType& last = events.types().back();
  EXPECT_STREQ(last.name, "zen::a:u");
  const perf_event_attr attr = attributes(last, Probe{});
  EXPECT_EQ(attr.type, uint32_t{PERF_TYPE_RAW});
  EXPECT_EQ(attr.config, 0x76u);
  EXPECT_EQ(attr.config1, 1u);
  EXPECT_EQ(attr.config2, 2u);
  EXPECT_EQ(attr.exclude_kernel, 1u);
  EXPECT_EQ(attr.exclude_user, 0u);
}

TEST(PerfChosen, knows_the_units_of_software_events_that_are_counted_on_request) {
  const ChosenEvents events("1/0x0/0x0/0x0/4/cpu-clock,1/0x7/0x0/0x0/4/alignment-faults");
  const EventType& faults = events.types().back();
  const EventType& clock = *(events.types().end() - 2);
  EXPECT_STREQ(clock.unit, "ns");
  EXPECT_STREQ(faults.unit, "1");
  EXPECT_TRUE(faults.in_kernel);
  EXPECT_THAT(names_of(ChosenEvents("")), Not(Contains("alignment-faults")));
}

TEST(PerfChosen, leaves_out_what_is_no_event) {
  for (const char* text : {"cycles", "0/0/0/0/0/", "0/0/0/0/a", ",,,", "0/0/0/0/x/a"}) {
    const ChosenEvents events(text);
    EXPECT_THAT(names_of(events), Not(Contains("cycles"))) << text;
    EXPECT_EQ(events.types().back().type, uint32_t{PERF_TYPE_SOFTWARE}) << text;
  }
}

TEST(PerfChosen, tells_what_is_no_event) {
  const ChosenEvents events("1/0x2/0x0/0x0/4/page-faults,cicles,7/x,,0/0x0/0x0/0x0/4/cycles");
  EXPECT_EQ(events.unknown(), "cicles, 7/x");
  Availability availability = probe_all(fake_kernel(), events.types());
  availability.unknown_names = events.unknown();
  const StateText state = state_of(availability, {});
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_THAT(state.reason,
              HasSubstr("no event of this machine has such a name (not counted: cicles"));
  const ChosenEvents long_ones(std::string(100'000, 'x') + ",y");
  EXPECT_LT(long_ones.unknown().size(), 300u);
  EXPECT_THAT(ChosenEvents(std::string(150, 'x') + "," + std::string(150, 'y')).unknown(),
              testing::EndsWith(" and more"));
}

TEST(PerfChosen, are_counted_here_where_programs_may_not_read_them) {
  fake = {};
  ChosenEvents events(kFive);
  EXPECT_EQ(events.leave_to_threads(fake_kernel()), "");
  EXPECT_THAT(names_of(events), Contains("zen::b"));
  EXPECT_TRUE(fake.open.empty());
}

TEST(PerfChosen, leaves_the_first_four_to_threads_that_can_read_them) {
  fake = {};
  static Kernel readable = fake_kernel();
  readable.map_ring = [](int fd, size_t) -> void* {
    auto& words = fake.rings[fake.open.at(fd).pid];
    words.assign(512, 0);
    reinterpret_cast<perf_event_mmap_page*>(words.data())->cap_user_rdpmc = 1;
    return words.data();
  };
  ChosenEvents events(kFive);
  EXPECT_EQ(events.leave_to_threads(readable), "cycles, zen::a:u, instructions, branch-misses");
  EXPECT_THAT(names_of(events), Contains("zen::b"));
  EXPECT_THAT(names_of(events), Not(Contains("cycles")));
  EXPECT_TRUE(fake.open.empty());
  EXPECT_EQ(fake.unmapped_count, 1);
}

TEST(PerfChosen, is_named_event_by_event_where_there_is_no_pmu) {
  fake = {};
  fake.refuse = [](const perf_event_attr& attr, pid_t) {
    return attr.type == PERF_TYPE_SOFTWARE ? 0 : -ENOENT;
  };
  const ChosenEvents events(kFive);
  Availability availability = probe_all(fake_kernel(), events.types());
  availability.names_hardware = true;
  const StateText state = state_of(availability, {});
  EXPECT_EQ(state.state, AON_STATE_DEGRADED);
  EXPECT_EQ(state.reason,
            "no PMU is visible (not counted: cycles, zen::a:u, instructions, branch-misses, "
            "zen::b)");
}

TEST(PerfChosen, is_sampled_under_its_name) {
  fake = {};
  fake.tasks[70] = {70};
  const ChosenEvents events("4/0x76/0x0/0x0/4/zen::a");
  aon_core core;
  {
    Session session(&core, &aon::test::fake_core_api(), fake_kernel(),
                    probe_all(fake_kernel(), events.types()), 0);
    session.process_started(3, 70);
    session.tick(5);
  }
  EXPECT_EQ(core.samples_of(3, "zen::a").size(), 1u);
}

}  // namespace
}  // namespace aon::perf
