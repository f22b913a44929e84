// Operations of NCCL: no call of the thread whose record it is, so no order of time and no nesting.

#include <algorithm>

#include "writers/assemble/event_order.h"

namespace aon::writers {
namespace {

template <class E>
E bounded(uint8_t value, uint32_t count) {
  return static_cast<E>(value < count ? value : 0);
}

uint64_t between(uint64_t from_ns, uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; }

}  // namespace

void EventOrder::emit_nccl(const Record& record) {
  const RecordHead& head = record.head;
  const bool is_in_flight = head.slot_count == kNcclInFlightSlots;
  if (head.slot_count < kNcclInFlightSlots) {
    ++outcome_->unmatched_count;
    return;
  }
  // Its place is where the thread is: that moves nothing, and nothing is counted as moved.
  Event& event = append(EventKind::kNcclCall, last_ns_, known_region(head.id));
  NcclOperation& operation = nccl_.emplace_back();
  event.request = reinterpret_cast<uint64_t>(&operation);
  const uint64_t* words = record.words;
  const uint64_t peer_flags = words[is_in_flight ? 3 : 5];
  operation.start_ns = clock_.to_ns(head.start_ticks);
  operation.end_ns = clock_.to_ns(end_ticks(record));
  operation.launch_ns = words[2] == 0 ? 0 : clock_.to_ns(words[2]);
  operation.bytes = head.a64;
  operation.sequence = words[0];
  operation.call = static_cast<uint32_t>(words[1]);
  operation.channels = static_cast<uint8_t>(words[1] >> 32);
  operation.algorithm =
      bounded<NcclAlgorithm>(static_cast<uint8_t>(words[1] >> 40), kNcclAlgorithmCount);
  operation.protocol =
      bounded<NcclProtocol>(static_cast<uint8_t>(words[1] >> 48), kNcclProtocolCount);
  operation.type = bounded<NcclType>(static_cast<uint8_t>(words[1] >> 56), kNcclTypeCount);
  operation.communicator = head.a32;
  operation.region = event.region;
  operation.flags = static_cast<uint32_t>(pair_high(peer_flags)) & ~uint32_t{kNcclInFlight};
  operation.peer = pair_low(peer_flags);
  if (is_in_flight) {
    operation.flags = (operation.flags & ~uint32_t{kNcclGpuTimed}) | kNcclInFlight;
    return;
  }
  if ((operation.flags & kNcclGpuTimed) == 0) return;
  operation.gpu_begin_ns = clock_.to_ns(words[3]);
  operation.gpu_ns = between(operation.gpu_begin_ns, clock_.to_ns(words[3] + words[4]));
  operation.skew_ns = between(operation.gpu_begin_ns, clock_.to_ns(words[3] + words[6]));
}

}  // namespace aon::writers
