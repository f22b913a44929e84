// Counters through made-up user pages and a made-up register.
#include "core/runtime/counters.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/runtime/counter_source.h"
#include "core/runtime/user_page.h"

namespace aon::runtime {
namespace {

perf_event_mmap_page make_page(uint32_t index, int64_t offset, uint16_t width = 48) {
  perf_event_mmap_page page = {};
  page.lock = 2;
  page.index = index;
  page.offset = offset;
  page.pmc_width = width;
  return page;
}

TEST(UserPage, adds_the_register_to_the_offset) {
  const perf_event_mmap_page page = make_page(3, 1000);
  uint32_t read = 99;
  const PageReading reading = read_user_page(&page, [&](uint32_t index) {
    read = index;
    return uint64_t{234};
  });
  EXPECT_EQ(read, 2u);
  EXPECT_EQ(reading.value, 1234u);
  EXPECT_EQ(reading.state, PageState::kCounting);
}

TEST(UserPage, takes_a_register_as_signed_in_its_width) {
  EXPECT_EQ(sign_extend(0xffff'ffff'ffff, 48), -1);
  EXPECT_EQ(sign_extend(0x7fff'ffff'ffff, 48), 0x7fff'ffff'ffff);
  EXPECT_EQ(sign_extend(~uint64_t{0}, 64), -1);
  // The kernel starts a register at minus the period and puts the rest into the offset.
  const perf_event_mmap_page page = make_page(1, int64_t{1} << 47);
  const uint64_t raw = (uint64_t{1} << 48) - (uint64_t{1} << 47) + 5;
  EXPECT_EQ(read_user_page(&page, [&](uint32_t) { return raw; }).value, 5u);
}

TEST(UserPage, gives_what_was_counted_before_when_the_event_is_off_the_pmu) {
  perf_event_mmap_page page = make_page(0, 77);
  page.time_enabled = 100;
  page.time_running = 60;
  const PageReading reading = read_user_page(&page, [](uint32_t) -> uint64_t {
    ADD_FAILURE() << "there is no register to read";
    return 0;
  });
  EXPECT_EQ(reading.state, PageState::kOff);
  EXPECT_EQ(reading.value, 77u);
  EXPECT_EQ(reading.missed_ns, 40u);
}

TEST(UserPage, reads_again_when_the_kernel_changed_it) {
  perf_event_mmap_page page = make_page(1, 0);
  int reads = 0;
  const PageReading reading = read_user_page(&page, [&](uint32_t) {
    if (++reads == 1) {
      page.lock += 2;
      page.offset = 500;
    }
    return uint64_t{1};
  });
  EXPECT_EQ(reads, 2);
  EXPECT_EQ(reading.value, 501u);
}

TEST(UserPage, gives_a_page_up_that_never_rests) {
  perf_event_mmap_page page = make_page(1, 0);
  int reads = 0;
  const PageReading reading = read_user_page(&page, [&](uint32_t) {
    ++reads;
    page.lock += 2;
    return uint64_t{1};
  });
  EXPECT_EQ(reads, kPageTries);
  EXPECT_EQ(reading.state, PageState::kChanging);
  page.lock = 3;  // the kernel is at it
  EXPECT_EQ(read_user_page(&page, [](uint32_t) { return uint64_t{1}; }).state,
            PageState::kChanging);
}

TEST(CounterList, is_read_with_its_names) {
  const std::string text = "0/0x1/0/0/4/instructions:u,4/0x76/0x2/3/2/zen4::x";
  CounterPlan plan = {};
  ASSERT_TRUE(parse_counters(text.c_str(), &plan));
  ASSERT_EQ(plan.count, 2u);
  EXPECT_EQ(plan.event[0].config[0], 1u);
  EXPECT_EQ(plan.event[1].type, 4u);
  EXPECT_EQ(plan.event[1].config[1], 2u);
  EXPECT_EQ(plan.event[1].config[2], 3u);
  EXPECT_EQ(plan.event[1].exclude, uint32_t{kExcludeKernel});
  uint32_t bytes = 0;
  const char* name = counter_name(text.c_str(), 0, &bytes);
  EXPECT_EQ(std::string(name, bytes), "instructions:u");
  name = counter_name(text.c_str(), 1, &bytes);
  EXPECT_EQ(std::string(name, bytes), "zen4::x");
  counter_name(text.c_str(), 2, &bytes);
  EXPECT_EQ(bytes, 0u);
}

TEST(CounterList, of_more_than_four_is_cut_and_nonsense_is_none) {
  CounterPlan plan = {};
  ASSERT_TRUE(parse_counters("0/0/0/0/0/a,0/1/0/0/0/b,0/2/0/0/0/c,0/3/0/0/0/d,0/4/0/0/0/e", &plan));
  EXPECT_EQ(plan.count, kMaxRegionCounters);
  for (const char* text : {"", "cycles", "0/0/0/0/", "0/x/0/0/0/a", "//////", "0,0,0"}) {
    EXPECT_FALSE(parse_counters(text, &plan)) << text;
  }
}

const CounterSource kRegisters = {nullptr, nullptr, nullptr, nullptr,
                                  [](uint32_t index) -> uint64_t { return 10 * (index + 1); }};

TEST(ThreadCounters, keep_the_last_value_where_a_page_gives_none) {
  perf_event_mmap_page pages[2] = {make_page(1, 100), make_page(2, 200)};
  ThreadCounters counters = {};
  counters.count = 2;
  counters.page[0] = &pages[0];
  counters.page[1] = &pages[1];
  CounterValues values;
  read_thread_counters(&counters, kRegisters, &values);
  EXPECT_TRUE(values.is_exact);
  EXPECT_EQ(values.value[0], 110u);
  EXPECT_EQ(values.value[1], 220u);
  pages[0].lock = 1;
  pages[1].offset = 100;  // never backwards
  read_thread_counters(&counters, kRegisters, &values);
  EXPECT_FALSE(values.is_exact);
  EXPECT_EQ(values.value[0], 110u);
  EXPECT_EQ(values.value[1], 220u);
}

CounterValues values_of(std::vector<uint64_t> numbers, bool is_exact = true,
                        uint64_t missed_ns = 0) {
  CounterValues values = {};
  for (size_t i = 0; i < numbers.size(); ++i) values.value[i] = numbers[i];
  values.is_exact = is_exact;
  values.missed_ns = missed_ns;
  return values;
}

TEST(CountersRecord, has_the_values_at_entry_and_what_was_added) {
  RecordHead call = {50, 7, RecordKind::kMessage, 2, kInsideSpan | kFailed, 12, 3, 99};
  const Record record = counters_record(call, 7, 2, values_of({100, 1000}), values_of({103, 1500}));
  EXPECT_TRUE(is_valid(record.head));
  EXPECT_EQ(record.head.kind, RecordKind::kCounters);
  EXPECT_EQ(record.head.id, 12u);
  EXPECT_EQ(record.head.flags, kInsideSpan);
  EXPECT_EQ(record.head.a32, 2u);
  EXPECT_EQ(record.head.slot_count, 2);
  EXPECT_EQ(end_ticks(record), 57u);
  EXPECT_EQ(std::vector<uint64_t>(record.words, record.words + 4),
            (std::vector<uint64_t>{100, 1000, 3, 500}));
}

TEST(CountersRecord, of_four_counters_and_a_long_call_fits) {
  const RecordHead call = {50, 0, RecordKind::kSpan, 1, 0, 12, 0, 0};
  const uint64_t duration = uint64_t{5} << 32;
  const Record record =
      counters_record(call, duration, 4, values_of({1, 2, 3, 4}), values_of({2, 4, 6, 8}));
  EXPECT_TRUE(is_valid(record.head));
  EXPECT_EQ(record.head.slot_count, kMaxSlots);
  EXPECT_EQ(duration_ticks(record), duration);
  EXPECT_EQ(record.words[7], 4u);
}

TEST(CountersRecord, says_when_a_counter_was_off_the_pmu) {
  const RecordHead call = {50, 7, RecordKind::kSpan, 1, 0, 12, 0, 0};
  const CounterValues good = values_of({1});
  const auto is_inexact = [&](const CounterValues& entry, const CounterValues& exit) {
    return (counters_record(call, 7, 1, entry, exit).head.a32 & kInexact) != 0;
  };
  EXPECT_FALSE(is_inexact(good, values_of({2})));
  EXPECT_TRUE(is_inexact(good, values_of({2}, false)));
  EXPECT_TRUE(is_inexact(values_of({1}, false), values_of({2})));
  EXPECT_TRUE(is_inexact(good, values_of({2}, true, 1000)));  // off and on again in between
}

TEST(CounterProblem, has_a_reason_for_every_error) {
  for (int error_number = 1; error_number < 134; ++error_number) {
    EXPECT_STRNE(explain_counters(error_number).reason, "") << error_number;
  }
  EXPECT_STREQ(explain_counters(ENOENT).reason, "no PMU is visible");
  EXPECT_STREQ(explain_counters(kNotAllowed).remedy,
               "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc");
}

}  // namespace
}  // namespace aon::runtime
