// Samples of counters, and counters at the borders of calls -> events. Threads that follow each
// other on one location each count from 0; the location's values never decrease.

#include <aon/annotation.h>

#include <algorithm>

#include "writers/assemble/event_order.h"

namespace aon::writers {

/// Whether the record before that of `call` has its counters.
bool EventOrder::has_counters_of(const RecordHead& call) const {
  const RecordHead& head = counters_.head;
  return head.kind == RecordKind::kCounters && head.start_ticks == call.start_ticks &&
         head.id == call.id && is_call(call.kind);
}

/// Those of a kBegin or kEnd that was just read, for once; null: it has none.
const Record* EventOrder::take_border_counters(const RecordHead& border) {
  if (border.kind != RecordKind::kBegin && border.kind != RecordKind::kEnd) return nullptr;
  RecordHead& head = counters_.head;
  if (head.kind != RecordKind::kCounters || head.id != kNextBorder) return nullptr;
  head.kind = RecordKind::kNone;
  return &counters_;
}

uint64_t EventOrder::sum_of_counter(uint32_t index, uint64_t value) {
  const uint64_t last = counter_last_[index];
  counter_sum_[index] += value >= last ? value - last : value;
  counter_last_[index] = value;
  return counter_sum_[index];
}

void EventOrder::emit_counters(const Record* counters, bool at_exit, uint64_t time_ns) {
  if (counters == nullptr) return;
  const RecordHead& head = counters->head;
  const uint32_t words = (head.slot_count - 1u) * 4 - ((head.flags & kWideDuration) != 0 ? 1 : 0);
  const uint32_t count = std::min(head.a32 & ~kInexact, kMaxRegionCounters);
  if (head.slot_count < 2 || 2 * count > words) return;  // not what a process of ours writes
  uint64_t values[kMaxRegionCounters] = {};
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t added = at_exit ? counters->words[count + i] : 0;
    values[i] = sum_of_counter(i, counters->words[i] + added);
  }
  append(EventKind::kCounters, time_ns, count)
      .set_counters(values, count, (head.a32 & kInexact) == 0);
}

void EventOrder::emit_sample(const Record& record) {
  const auto metric = metrics_->find(record.head.id);
  if (metric == metrics_->end() || is_border_counter(record.head.id)) {
    ++outcome_->unmatched_count;
    return;
  }
  Event& event = append(EventKind::kSample, clock_.to_ns(record.head.start_ticks), metric->second);
  event.bytes = record.head.a64;
  event.request = record.words[0];
  event.bytes_received = record.words[1];
}

}  // namespace aon::writers
