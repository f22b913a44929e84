/// Records of point-to-point calls. A peer is a rank of the call's communicator; MPI_PROC_NULL
/// is kNoPeer and moves no bytes. A receive tells what the status says, so wildcards are
/// resolved; the program's own status is used, or one of ours where it ignores it.
///
/// MPI is asked for derived types, and for communicators that we have not seen made, only after it
/// took the call that has them (settle()); until then their bytes and id are 0.
///
/// Thread: any.   Cost: beside the two clock reads some loads and stores.
#pragma once

#include <aon/mpi_records.h>
#include <aon/record.h>

#include "mpi/call.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/requests.h"

namespace aon::mpi {

/// One end of a message as its call asks for it.
struct Envelope {
  Communicator* communicator;
  uint64_t bytes;
  uint64_t peer_tag;  ///< as the records have them
  bool is_whole;      ///< false: settle() has more to learn

  int32_t peer() const { return pair_low(peer_tag); }
  int32_t tag() const { return pair_high(peer_tag); }
};

/// Here and in settle() an argument is C's, or Fortran's that is looked at when it is needed
/// (fortran.h).
template <class Count, class Datatype, class Integer, class Comm>
[[gnu::always_inline]] inline Envelope outgoing(Count count, Datatype datatype, Integer destination,
                                                Integer tag, Comm comm) {
  Communicator* c = find_communicator(comm);
  const int to = destination;
  const bool is_nobody = to == abi.proc_null;
  const Handle type = datatype;
  const bool has_bytes = is_nobody || is_basic(type);
  return {c, is_nobody || !has_bytes ? 0 : bytes_of(count, type), pack_pair(peer_in(*c, to), tag),
          has_bytes && c->id != 0};
}

/// What a receive will get is not known yet: no bytes.
template <class Integer, class Comm>
[[gnu::always_inline]] inline Envelope incoming(Integer source, Integer tag, Comm comm) {
  Communicator* c = find_communicator(comm);
  return {c, 0, pack_pair(peer_in(*c, source), tag), c->id != 0};
}

Envelope settled_outgoing(int64_t count, Handle datatype, int destination, int tag,
                          Handle comm) noexcept;
Envelope settled_incoming(int source, int tag, Handle comm) noexcept;

/// After the call: what could not be known before it, if MPI took it.
template <class Count, class Datatype, class Integer, class Comm>
[[gnu::always_inline]] inline void settle(Envelope* e, Count count, Datatype datatype,
                                          Integer destination, Comm comm, int result) {
  if (AON_LIKELY(e->is_whole) || result != kSuccess) return;
  *e = settled_outgoing(count, datatype, destination, e->tag(), comm);
}
template <class Integer, class Comm>
[[gnu::always_inline]] inline void settle(Envelope* e, Integer source, Comm comm, int result) {
  if (AON_LIKELY(e->is_whole) || result != kSuccess) return;
  *e = settled_incoming(source, e->tag(), comm);
}

/// What a receive got. `failed_result`: the status says nothing, the envelope stays as asked.
[[gnu::always_inline]] inline Envelope received(const Envelope& asked, const Status* status,
                                                int result) {
  if (AON_UNLIKELY(result != kSuccess)) return asked;
  return {asked.communicator, status_bytes(status),
          pack_pair(peer_in(*asked.communicator, status_source(status)), status_tag(status)), true};
}

[[gnu::always_inline]] inline OpenCall begin_message(Writer* w, const Site& site,
                                                     const Envelope& e) {
  return begin_call(w, site.id, e.communicator->id, e.peer_tag, e.bytes);
}

[[gnu::always_inline]] inline void finish_blocking(const OpenCall& call, uint16_t direction,
                                                   const Envelope& e, int result) {
  finish_message(call, static_cast<uint16_t>(direction | failed(result)), e.communicator->id,
                 e.bytes, e.peer_tag, 0);
}

/// The record of a call that starts a transfer, and its request. A call that failed starts none.
[[gnu::always_inline]] inline void finish_start(const OpenCall& call, RequestKind kind,
                                                const Envelope& e, Handles request, int result) {
  const uint16_t direction = kind == RequestKind::kSend ? kOutgoing : kIncoming;
  if (AON_UNLIKELY(result != kSuccess)) {
    finish_span(call, kFailed);
    return;
  }
  const uint64_t number = next_request_number();
  finish_message(call, static_cast<uint16_t>(direction | kNonblocking), e.communicator->id, e.bytes,
                 e.peer_tag, number);
  const auto put = kind == RequestKind::kSend ? put_started<RequestKind::kSend>
                                              : put_started<RequestKind::kReceive>;
  put(load_handle(request), number, e.communicator, e.bytes, e.peer_tag);
}

/// MPI_Isendrecv: two messages, one within the other, with one request.
void finish_start_exchange(const OpenCall& call, const Envelope& sent, const Envelope& asked,
                           Handles request, int result) noexcept;

/// MPI_Send_init and its like: a span; the request waits for MPI_Start. `call` all zero: the
/// recording is paused.
void finish_prepare(const OpenCall& call, RequestKind kind, const Envelope& e, Handles request,
                    int result, bool is_partitioned = false) noexcept;

/// MPI_Start: the message of the persistent request, which was `given` before the call.
void finish_start_one(const OpenCall& call, Handle given, Handles request, int result) noexcept;

/// Inside MPI_Startall, before the real call: each request is a message of its own, in a region
/// of its own.
/// Returns the least number that one of them can have.
uint64_t start_each(Writer* w, int count, Handles requests) noexcept;

/// MPI refused to start them: what start_each() said of them is taken back.
void stop_each(Writer* w, int count, Handles requests, uint64_t least_number) noexcept;

/// Of the record of a matched probe: kIncoming says that it has taken a message out, not where it
/// found none, or only that MPI_PROC_NULL sends nothing.
inline uint16_t probe_flags(int result, Handles message, const int* flag = nullptr) {
  if (result != kSuccess || (flag != nullptr && *flag == 0)) return failed(result);
  const Handle handle = load_handle(message);
  return handle == abi.message_null || handle == abi.message_no_proc ? 0 : kIncoming;
}

/// A matched probe found `message`: its communicator is remembered for MPI_Mrecv.
void remember_message(Writer* w, Handles message, Handle comm) noexcept;

/// What is known of a message that MPI_Mrecv or MPI_Imrecv is about to receive. MPI_MESSAGE_NO_PROC
/// comes from MPI_PROC_NULL.
Envelope matched(Writer* w, Handles message) noexcept;

}  // namespace aon::mpi
