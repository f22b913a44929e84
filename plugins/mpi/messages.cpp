#include "mpi/messages.h"

#include <aon/mpi.h>

#include "mpi/channels.h"
#include "mpi/completion.h"

namespace aon::mpi {
namespace {

uint16_t flags_of(const Request& request) {
  const uint16_t direction = request.kind == RequestKind::kSend ? kOutgoing : kIncoming;
  return static_cast<uint16_t>(direction | (request.is_partitioned ? kPartitioned : 0));
}

void finish_started(const OpenCall& call, const Request& request, int result = kSuccess) {
  if (request.kind == RequestKind::kCollective) {
    const uint64_t words[] = {request.bytes_received, pack_pair(request.peer, request.tag),
                              request.number,
                              pack_instance(request.preparation, request.start_count)};
    const uint16_t from_all = request.is_from_all ? kFromAll : 0;
    finish_call<4>(call, RecordKind::kCollective,
                   static_cast<uint16_t>(kNonblocking | failed(result) | from_all),
                   request.communicator->id, request.bytes, words);
    return;
  }
  const uint64_t words[] = {pack_pair(request.peer, request.tag), request.number, request.channel};
  finish_call<3>(call, RecordKind::kMessage,
                 static_cast<uint16_t>(flags_of(request) | kNonblocking), request.communicator->id,
                 request.bytes, words);
}

Channels g_channels;

/// Region of one message that MPI_Startall starts; named once.
uint32_t startall_region() {
  static std::atomic<uint32_t> region{0};
  uint32_t id = region.load(std::memory_order_relaxed);
  if (id == 0) {
    id = aon_intern_region("MPI_Startall: one request",
                           static_cast<uint8_t>(RegionRole::kPointToPoint),
                           static_cast<uint8_t>(Paradigm::kMpi));
    region.store(id, std::memory_order_relaxed);
  }
  return id;
}

/// Region of the receiving half of MPI_Isendrecv; named once.
uint32_t isendrecv_region() {
  static std::atomic<uint32_t> region{0};
  uint32_t id = region.load(std::memory_order_relaxed);
  if (id == 0) {
    id =
        aon_intern_region("MPI_Isendrecv: receive", static_cast<uint8_t>(RegionRole::kPointToPoint),
                          static_cast<uint8_t>(Paradigm::kMpi));
    region.store(id, std::memory_order_relaxed);
  }
  return id;
}

}  // namespace

Envelope settled_outgoing(int64_t count, Handle datatype, int destination, int tag,
                          Handle comm) noexcept {
  Communicator* c = learn_communicator(comm);
  const bool is_nobody = destination == abi.proc_null;
  return {c, is_nobody ? 0 : bytes_of(count, datatype), pack_pair(peer_in(*c, destination), tag),
          true};
}

Envelope settled_incoming(int source, int tag, Handle comm) noexcept {
  Communicator* c = learn_communicator(comm);
  return {c, 0, pack_pair(peer_in(*c, source), tag), true};
}

void finish_start_exchange(const OpenCall& call, const Envelope& sent, const Envelope& asked,
                           Handles request, int result) noexcept {
  if (result != kSuccess) {
    finish_span(call, kFailed);
    return;
  }
  const uint64_t number = next_request_numbers(2);
  finish_message(begin_call(call.w, isendrecv_region()), kIncoming | kNonblocking,
                 asked.communicator->id, 0, asked.peer_tag, number + 1);
  finish_message(call, kOutgoing | kNonblocking, sent.communicator->id, sent.bytes, sent.peer_tag,
                 number);
  Request both = {
      load_handle(request),   number, sent.bytes, sent.communicator, sent.peer(), sent.tag(), {0},
      RequestKind::kExchange, false};
  both.source = asked.peer();
  put_request(call.w, both);
}

void finish_prepare(const OpenCall& call, RequestKind kind, const Envelope& e, Handles request,
                    int result, bool is_partitioned) noexcept {
  if (!finish_preparing(call, result)) return;
  Request prepared = {
      load_handle(request), 0, e.bytes, e.communicator, e.peer(), e.tag(), {0}, kind, true};
  prepared.is_partitioned = is_partitioned;
  if (is_partitioned) {
    const bool is_send = kind == RequestKind::kSend;
    prepared.channel = g_channels.next(e.communicator->id, e.peer_tag, is_send);
  }
  put_request(call.w, prepared);
}

void finish_start_one(const OpenCall& call, Handle given, Handles request, int result) noexcept {
  Request started;
  follow_start(given, request, 0);
  const Handle handle = handle_at(request, abi.request_null);
  const bool is_known = result == kSuccess ? activate_request(handle, &started)
                                           : count_refused_start(handle, &started);
  if (is_known) {
    finish_started(call, started, result);
  } else {
    finish_span(call, failed(result));
  }
}

uint64_t start_each(Writer* w, int count, Handles requests) noexcept {
  const uint64_t least_number = next_request_number();
  if (requests.is_null()) return least_number;
  for (int i = 0; i < count; ++i) {
    Request started;
    if (!activate_request(requests[i], &started)) continue;
    finish_started(begin_call(w, startall_region()), started);
  }
  return least_number;
}

void stop_each(Writer* w, int count, Handles requests, uint64_t least_number) noexcept {
  if (requests.is_null()) return;
  for (int i = 0; i < count; ++i) {
    Request started;
    const uint64_t number = request_number(requests[i]);
    if (number < least_number || number == kAnyShared) continue;
    if (take_request(w, requests[i], number, &started)) put_not_started(w, started);
  }
}

void remember_message(Writer* w, Handles message, Handle comm) noexcept {
  const Handle handle = load_handle(message);
  if (handle == abi.message_null || handle == abi.message_no_proc) return;
  put_request(w, {handle,
                  next_request_number(),
                  0,
                  learn_communicator(comm),
                  -1,
                  -1,
                  {0},
                  RequestKind::kMessage,
                  false});
}

Envelope matched(Writer* w, Handles message) noexcept {
  const Handle handle = handle_at(message, abi.message_null);
  Request known;
  if (handle == abi.message_no_proc) {
    return {find_communicator(abi.comm_null), 0, pack_pair(kNoPeer, abi.any_tag), true};
  }
  if (!forget_request(w, handle, &known)) {
    return {find_communicator(abi.comm_null), 0, pack_pair(kAnyPeer, abi.any_tag), true};
  }
  return {known.communicator, 0, pack_pair(kAnyPeer, abi.any_tag), true};
}

}  // namespace aon::mpi
