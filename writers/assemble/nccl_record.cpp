#include "writers/assemble/nccl_record.h"

#include <algorithm>

namespace aon::writers {
namespace {

template <class E>
E bounded(uint64_t value, uint32_t count) {
  const auto number = static_cast<uint8_t>(value);
  return static_cast<E>(number < count ? number : 0);
}

/// A count of calls from its low half and the word that has its bits 32 to 47.
uint64_t call_of(uint64_t low, uint64_t high) {
  return (low & UINT32_MAX) | high >> kNcclHighCallShift << 32;
}

uint64_t between(uint64_t from_ns, uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; }

}  // namespace

NcclOperation read_nccl_operation(const Record& record, clock::ClockMap::Cursor& clock) {
  const RecordHead& head = record.head;
  const bool is_in_flight = head.slot_count == kNcclInFlightSlots;
  const uint64_t* words = record.words;
  const uint64_t peer_flags = words[is_in_flight ? 3 : 5];
  NcclOperation operation;
  operation.start_ns = clock.to_ns(head.start_ticks);
  operation.end_ns = clock.to_ns(end_ticks(record));
  operation.launch_ns = words[2] == 0 ? 0 : clock.to_ns(words[2]);
  operation.bytes = head.a64;
  operation.sequence = words[0];
  operation.call = call_of(words[1], peer_flags);
  operation.channels = static_cast<uint8_t>(words[1] >> 32);
  operation.algorithm = bounded<NcclAlgorithm>(words[1] >> 40, kNcclAlgorithmCount);
  operation.protocol = bounded<NcclProtocol>(words[1] >> 48, kNcclProtocolCount);
  operation.type = bounded<NcclType>(words[1] >> 56, kNcclTypeCount);
  operation.communicator = head.a32;
  operation.region = head.id;
  operation.flags = static_cast<uint16_t>(pair_high(peer_flags));
  operation.peer = pair_low(peer_flags);
  if (is_in_flight) {
    operation.flags = (operation.flags & ~uint32_t{kNcclGpuTimed}) | kNcclInFlight;
    return operation;
  }
  // Of a whole record only one that was given up is in flight for ever.
  if ((operation.flags & kNcclAbandoned) == 0) operation.flags &= ~uint32_t{kNcclInFlight};
  if ((operation.flags & kNcclGpuTimed) == 0) return operation;
  operation.gpu_begin_ns = clock.to_ns(words[3]);
  operation.gpu_ns = between(operation.gpu_begin_ns, clock.to_ns(words[3] + words[4]));
  operation.skew_ns = between(operation.gpu_begin_ns, clock.to_ns(words[3] + words[6]));
  return operation;
}

NcclProxyWork read_nccl_proxy(const Record& record, clock::ClockMap::Cursor& clock) {
  const RecordHead& head = record.head;
  const uint64_t* words = record.words;
  NcclProxyWork work;
  work.start_ns = clock.to_ns(head.start_ticks);
  work.end_ns = std::max(work.start_ns, clock.to_ns(end_ticks(record)));
  const auto waited_ns = [&](uint64_t ticks) {
    return between(work.start_ns, clock.to_ns(head.start_ticks + ticks));
  };
  work.bytes = head.a64;
  work.communicator = head.a32;
  work.call =
      static_cast<uint32_t>(words[0]) == kNoNcclCall ? kNoNcclCall : call_of(words[0], words[0]);
  work.channel = static_cast<uint8_t>(words[0] >> 32);
  const auto flags = static_cast<uint8_t>(words[0] >> 40);
  work.is_send = (flags & kNcclProxySend) != 0;
  work.is_last = (flags & kNcclProxyLast) != 0;
  work.peer = pair_low(words[1]);
  work.planned_step_count = static_cast<uint32_t>(pair_high(words[1]));
  work.step_count = static_cast<uint32_t>(pair_low(words[2]));
  work.network_event_count = static_cast<uint32_t>(pair_high(words[2]));
  work.gpu_ns = waited_ns(words[4]);
  work.peer_ns = waited_ns(words[5]);
  work.network_ns = waited_ns(words[6]);
  work.flush_ns = waited_ns(words[7]);
  work.longest_ns = waited_ns(words[8]);
  return work;
}

}  // namespace aon::writers
