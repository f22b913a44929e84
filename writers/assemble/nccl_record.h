/// kNcclCall records (aon/nccl.h) -> NcclOperation and NcclProxyWork. What a spool says is not
/// trusted: numbers out of range become "unknown".
/// Thread: any.   Cost: some ns.
#pragma once

#include "core/clock/clock_map.h"
#include "writers/writer.h"

namespace aon::writers {

/// False for a record too short to be one.
inline bool is_nccl_operation(const RecordHead& head) {
  return head.kind == RecordKind::kNcclCall &&
         (head.slot_count == kNcclInFlightSlots || head.slot_count == kNcclSlots);
}
inline bool is_nccl_proxy(const RecordHead& head) {
  return head.kind == RecordKind::kNcclCall && head.slot_count == kNcclProxySlots;
}

/// Those of a range are few, and may lie on both sides of where the low half of the count wraps.
inline bool is_nccl_overwritten(const RecordHead& head) {
  constexpr uint32_t kMostAcross = 1u << 30;
  const auto first = static_cast<uint32_t>(head.a64);
  const auto last = static_cast<uint32_t>(head.a64 >> 32);
  return head.kind == RecordKind::kNcclCall && head.slot_count == kNcclOverwrittenSlots &&
         (first <= last || last - first < kMostAcross);
}

/// Of a record that is_nccl_operation(). Its region is the record's, known or not.
NcclOperation read_nccl_operation(const Record& record, clock::ClockMap::Cursor& clock);

/// Of a record that is_nccl_proxy().
NcclProxyWork read_nccl_proxy(const Record& record, clock::ClockMap::Cursor& clock);

}  // namespace aon::writers
