/// Ends of calls that only MPI has: the records of collectives, exchanges, one-sided calls and I/O,
/// and of a call that has completed a message.
/// Thread: each writes its own stream.   Signal: safe.   Cost: as finish_call() in aon/writer.h.
#pragma once

#include <aon/writer.h>

namespace aon {

[[gnu::always_inline]] inline void finish_exchange(const OpenCall& call, uint16_t flags,
                                                   uint32_t communicator, uint64_t bytes_sent,
                                                   uint64_t destination_tag,
                                                   uint64_t bytes_received, uint64_t source_tag) {
  const uint64_t words[] = {destination_tag, bytes_received, source_tag};
  finish_call<3>(call, RecordKind::kExchange, flags, communicator, bytes_sent, words);
}

/// `root_operation` is pack_pair(root or -1, CollectiveOperation).
[[gnu::always_inline]] inline void finish_collective(const OpenCall& call, uint16_t flags,
                                                     uint32_t communicator, uint64_t bytes_sent,
                                                     uint64_t bytes_received,
                                                     uint64_t root_operation, uint64_t request) {
  const uint64_t words[] = {bytes_received, root_operation, request};
  finish_call<3>(call, RecordKind::kCollective, flags, communicator, bytes_sent, words);
}

/// `target_operation` is pack_pair(target or kAnyPeer, RmaOperation); for `request_or_group` see
/// there.
[[gnu::always_inline]] inline void finish_rma(const OpenCall& call, uint16_t flags, uint32_t window,
                                              uint64_t bytes_sent, uint64_t bytes_received,
                                              uint64_t target_operation,
                                              uint64_t request_or_group) {
  const uint64_t words[] = {target_operation, bytes_received, request_or_group};
  finish_call<3>(call, RecordKind::kRma, flags, window, bytes_sent, words);
}

/// `operation_flags` is pack_pair(IoOperation, IoFlags).
[[gnu::always_inline]] inline void finish_io(const OpenCall& call, uint16_t flags, uint32_t file,
                                             uint64_t bytes, uint64_t operation_flags,
                                             uint64_t offset, uint64_t request,
                                             uint64_t bytes_asked_for) {
  const uint64_t words[] = {operation_flags, offset, request, bytes_asked_for};
  finish_call<4>(call, RecordKind::kIo, flags, file, bytes, words);
}

[[gnu::always_inline]] inline bool put_io_completion(Writer* w, uint64_t now, uint16_t flags,
                                                     uint32_t file, uint64_t bytes,
                                                     uint64_t operation_flags, uint64_t request) {
  const uint64_t words[] = {operation_flags, request};
  constexpr auto kWhat = static_cast<uint32_t>(RecordKind::kIo);
  return put_event<2>(w, RecordKind::kCompletion, now, flags, kWhat, file, bytes, words);
}

/// The end of a message that a call has completed.
struct MessageEnd {
  uint32_t flags;
  uint32_t communicator;
  uint64_t bytes;
  uint64_t peer_tag;
  uint64_t request;
};

[[gnu::always_inline]] inline void put_completion(Writer* w, uint64_t now, const MessageEnd& end) {
  put_completion(w, now, static_cast<uint16_t>(end.flags), end.communicator, end.bytes,
                 end.peer_tag, end.request);
}

[[gnu::always_inline]] inline void store_completion(char* at, uint64_t end,
                                                    const MessageEnd& message) {
  const uint64_t words[] = {message.peer_tag, message.request};
  const auto flags = static_cast<uint16_t>(message.flags | kInsideSpan);
  store_record<2>(
      at, {end, 0, RecordKind::kCompletion, 2, flags, 0, message.communicator, message.bytes},
      words);
}

/// finish_completing() at any cost. `frame` is its caller's: what an emit there left is repaired.
[[gnu::noinline]] inline void finish_completing_slow(OpenCall call, uint64_t end,
                                                     MessageEnd message, uint32_t weight,
                                                     const char* frame) {
  Record record;
  store_completion(reinterpret_cast<char*>(&record), end, message);
  aon_writer_put_slow(call.w, frame, &record, end);
  finish_span_at(call, end, 0, weight);
}

/// put_completion() and finish_span_at() of a call that was over at `end`, at the price of one.
[[gnu::always_inline]] inline void finish_completing(const OpenCall& call, uint64_t end,
                                                     const MessageEnd& message, uint32_t weight) {
  constexpr uint32_t kBytes = (2 + 1) * kSlotBytes;
  const uint64_t duration = end - call.start_ticks;
  if (AON_UNLIKELY(!begin_end(call, duration, kBytes))) {
    finish_completing_slow(call, end, message, weight, current_frame());
    return;
  }
  char* at = call.w->context[0].cursor;
  store_completion(at, end, message);
  const bool is_sampled_call = weight > 1;
  store_record<0>(at + 2 * kSlotBytes,
                  {call.start_ticks, static_cast<uint32_t>(duration), RecordKind::kSpan, 1,
                   static_cast<uint16_t>(is_sampled_call ? kSampledCall : 0), call.region, 0,
                   is_sampled_call ? weight : 0},
                  nullptr);
  end_record(call.w, kBytes, 2);
  leave_call(call.w);
}

}  // namespace aon
