// Counters of calls and regions on their way through EventOrder.
#include <aon/annotation.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/writers/spool_fixture.h"
#include "writers/assemble/event_order.h"

namespace aon::writers {
namespace {

using test::span_record;

/// The record before that of a call: `at_entry`, then `added`.
Record counters(const Record& call, std::vector<uint64_t> words, uint32_t flags = 0) {
  Record record{};
  record.head = call.head;
  record.head.kind = RecordKind::kCounters;
  record.head.slot_count = static_cast<uint8_t>(1 + (words.size() + 3) / 4);
  record.head.a32 = static_cast<uint32_t>(words.size() / 2) | flags;
  for (size_t i = 0; i < words.size(); ++i) record.words[i] = words[i];
  return record;
}

class CounterEvents : public testing::Test {
 protected:
  CounterEvents() {
    regions_ = {{1, 0}, {2, 1}, {3, 2}};
    global_.resize(3, {"region", RegionRole::kFunction, Paradigm::kMpi});
  }

  std::string run(const std::vector<Record>& records) {
    std::string text;
    EventOrder order(clock_,
                     {&regions_, &global_, &none_, &none_, &none_, &none_, &none_, &none_, nullptr},
                     &requests_, &open_io_, &outcome_, &tally_, [&](std::span<const Event> events) {
                       for (const Event& event : events) add(event, &text);
                       return Status();
                     });
    EXPECT_TRUE(order.add({.records = records, .is_resync = false, .open = {}}).has_value());
    EXPECT_TRUE(order.finish(0).has_value());
    return text;
  }

  static void add(const Event& event, std::string* text) {
    *text += text->empty() ? "" : " ";
    if (event.kind == EventKind::kCounters) {
      *text += "(";
      for (uint32_t i = 0; i < event.region; ++i)
        *text += (i == 0 ? "" : ",") + std::to_string(event.counter(i));
      *text += event.counters_are_exact() ? ")" : ")!";
    } else {
      *text += (event.kind == EventKind::kEnter ? "+" : "-") + std::to_string(event.region);
    }
    *text += "@" + std::to_string(event.time_ns);
  }

  clock::ClockMap clock_;
  std::unordered_map<uint32_t, uint32_t> regions_;
  std::unordered_map<uint32_t, uint32_t> none_;
  std::vector<GlobalRegion> global_;
  OpenIo open_io_;
  GroupRequests requests_;
  Outcome outcome_;
  LocationTally tally_;
};

TEST_F(CounterEvents, stand_before_both_ends_of_the_call) {
  const Record call = span_record(1, 10, 20);
  EXPECT_EQ(run({counters(call, {100, 5, 30, 1}), call}), "(100,5)@10 +1@10 (130,6)@20 -1@20");
  EXPECT_EQ(tally_.decoded, 2u);
  EXPECT_EQ(tally_.counters, 1u);
}

Record border(RecordKind kind, uint64_t ticks, uint32_t region, uint16_t flags = 0) {
  Record record{};
  record.head = {ticks, 0, kind, 1, flags, region, 0, 0};
  return record;
}

/// The record before `border`: the values there.
Record values_at(const Record& border, std::vector<uint64_t> values) {
  Record record{};
  record.head = border.head;
  record.head.kind = RecordKind::kCounters;
  record.head.id = kNextBorder;
  const size_t words = 2 * values.size();
  record.head.slot_count = static_cast<uint8_t>(1 + (words + 3) / 4);
  record.head.a32 = static_cast<uint32_t>(values.size());
  std::copy(values.begin(), values.end(), record.words);
  return record;
}

TEST_F(CounterEvents, stand_before_the_borders_of_regions) {
  const Record begin = border(RecordKind::kBegin, 10, 2);
  const Record call = span_record(1, 12, 14);
  const Record end = border(RecordKind::kEnd, 20, 2);
  EXPECT_EQ(run({values_at(begin, {100, 5}), begin, counters(call, {110, 6, 1, 1}), call,
                 values_at(end, {130, 9}), end}),
            "(100,5)@10 +2@10 (110,6)@12 +1@12 (111,7)@14 -1@14 (130,9)@20 -2@20");
}

TEST_F(CounterEvents, of_a_border_inside_a_call_wait_with_it) {
  const Record begin = border(RecordKind::kBegin, 11, 2, kInsideSpan);
  const Record end = border(RecordKind::kEnd, 13, 2, kInsideSpan);
  const Record call = span_record(1, 10, 20);
  EXPECT_EQ(
      run({values_at(begin, {5}), begin, values_at(end, {7}), end, counters(call, {4, 5}), call}),
      "(4)@10 +1@10 (5)@11 +2@11 (7)@13 -2@13 (9)@20 -1@20");
}

TEST_F(CounterEvents, of_an_end_that_closes_other_regions_too_are_nobodys) {
  const Record outer = border(RecordKind::kBegin, 10, 2);
  const Record inner = border(RecordKind::kBegin, 12, 3);
  const Record end = border(RecordKind::kEnd, 20, 2);
  EXPECT_EQ(run({values_at(outer, {1}), outer, inner, values_at(end, {9}), end}),
            "(1)@10 +2@10 +3@12 -3@20 -2@20");
}

TEST_F(CounterEvents, of_four_counters_keep_all_values) {
  const Record call = span_record(1, 10, 20);
  const uint64_t big = uint64_t{1} << 60;
  EXPECT_EQ(run({counters(call, {1, 2, 3, big, 1, 1, 1, 1}), call}),
            "(1,2,3," + std::to_string(big) + ")@10 +1@10 (2,3,4," + std::to_string(big + 1) +
                ")@20 -1@20");
}

TEST_F(CounterEvents, go_with_calls_inside_a_call) {
  Record inner = span_record(2, 12, 15);
  inner.head.flags = kInsideSpan;
  const Record outer = span_record(1, 10, 20);
  EXPECT_EQ(run({counters(inner, {110, 3}), inner, counters(outer, {100, 50}), outer}),
            "(100)@10 +1@10 (110)@12 +2@12 (113)@15 -2@15 (150)@20 -1@20");
}

TEST_F(CounterEvents, without_their_call_are_left_out) {
  const Record lost = span_record(1, 10, 20);
  const Record other = span_record(2, 30, 40);
  EXPECT_EQ(run({counters(lost, {100, 5}), other}), "+2@30 -2@40");
}

TEST_F(CounterEvents, never_run_backwards_when_another_thread_takes_the_location) {
  const Record first = span_record(1, 10, 20);
  const Record second = span_record(1, 40, 50);
  Record thread{};
  thread.head.kind = RecordKind::kThread;
  thread.head.slot_count = 1;
  thread.head.start_ticks = 30;
  thread.head.a32 = 1;
  EXPECT_EQ(run({counters(first, {100, 5}), first, thread, counters(second, {200, 1}), second}),
            "(100)@10 +1@10 (105)@20 -1@20 (305)@40 +1@40 (306)@50 -1@50");
}

TEST_F(CounterEvents, say_when_they_are_not_exact) {
  const Record call = span_record(1, 10, 20);
  EXPECT_EQ(run({counters(call, {100, 5}, kInexact), call}), "(100)!@10 +1@10 (105)!@20 -1@20");
  EXPECT_EQ(tally_.inexact_counters, 1u);
}

TEST_F(CounterEvents, that_are_damaged_are_not_read_beyond_their_end) {
  const Record call = span_record(1, 10, 20);
  Record damaged = counters(call, {100, 5});
  damaged.head.a32 = 4;  // needs eight words
  EXPECT_EQ(run({damaged, call}), "+1@10 -1@20");
  damaged.head.slot_count = 1;
  damaged.head.a32 = 0xffff;
  EXPECT_EQ(run({damaged, call}), "+1@10 -1@20");
}

}  // namespace
}  // namespace aon::writers
