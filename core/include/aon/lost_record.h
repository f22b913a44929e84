/// A kLost record that tells of records which a reader, not their thread, found missing.
/// Depends on record.h only.   Thread: any.   Signal: safe.
#pragma once

#include <aon/record.h>

namespace aon {

/// With a wide duration; an end before the start is taken for the start. `regions` is what
/// pack_lost_regions() gives.
constexpr Record lost_record(LossReason reason, uint64_t count, uint64_t start_ticks,
                             uint64_t end_ticks, uint32_t regions = 0) {
  Record record{};
  const uint64_t duration = end_ticks > start_ticks ? end_ticks - start_ticks : 0;
  record.head.start_ticks = start_ticks;
  record.head.duration_ticks = static_cast<uint32_t>(duration);
  record.head.kind = RecordKind::kLost;
  record.head.slot_count = 2;
  record.head.flags = kWideDuration;
  record.head.id = static_cast<uint32_t>(reason);
  record.head.a32 = regions;
  record.head.a64 = count;
  record.words[3] = duration;
  return record;
}

}  // namespace aon
