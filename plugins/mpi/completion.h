/// Wait, Test and their forms: which of the requests a call was given it has completed, and the
/// kCompletion record of each, before the record of the call itself.
///
/// MPI overwrites the handles when it completes them, so they are copied before the call; statuses
/// go to memory of ours where the program ignores them. Up to kInlineRequests both lie on the
/// stack, beyond that in a block that is kept for the next call.
///
/// While the recording is paused the same is done without a writer (null): requests go, untold, so
/// that none is taken for another one that has its handle later.
///
/// A call that starts persistent requests overwrites handles, too: Open MPI gives a buffered send
/// that is complete but not yet sent another one (ob1, MPI_Start).
///
/// Thread: any; a block belongs to one call at a time.   Signal: no.
/// Cost: about 1 ns per request given, 5 ns and one record per request completed.
#pragma once

#include <aon/mpi_records.h>

#include "mpi/call.h"
#include "mpi/handles.h"
#include "mpi/requests.h"

namespace aon::mpi {

constexpr int kInlineRequests = 32;

/// What a call wrote to `out`, or `none` where a program passes a null pointer, which MPI refuses.
[[gnu::always_inline]] inline int value_or(const int* out, int none) {
  return out != nullptr ? *out : none;
}

/// The end of a message that has come or gone. A receive from MPI_PROC_NULL got nothing, whatever
/// the status says: MPICH 4.0's says rank 0.
[[gnu::always_inline]] inline MessageEnd message_end(const Request& request, const Status* status) {
  MessageEnd end = {kOutgoing, request.communicator->id, request.bytes,
                    pack_pair(request.peer, request.tag), request.number};
  const bool is_cancelled = status_cancelled(status);
  if (request.kind != RequestKind::kSend) {
    end.flags = kIncoming;
    end.bytes = 0;
    if (!is_cancelled && request.peer != kNoPeer) {
      const int32_t peer = peer_in(*request.communicator, status_source(status));
      end.peer_tag = pack_pair(peer, status_tag(status));
      end.bytes = status_bytes(status);
    }
  }
  if (AON_UNLIKELY(is_cancelled)) end.flags |= kCancelled;
  return end;
}

/// Whether all that `claimed` ends with is message_end().
[[gnu::always_inline]] inline bool is_one_message(const Request& claimed, int result) {
  return claimed.kind <= RequestKind::kReceive && !claimed.is_partitioned && result == kSuccess;
}

/// The end of a request that claim_request() gave, with `result`: of any kind, in every case.
/// `handle` is its own, which stood at `index` before the call.
void complete_claimed(Writer* w, uint64_t now, const Request& claimed, Handle handle,
                      Handles requests, int index, const Status* status, int result) noexcept;

/// Request `index`, which was `handle` before the call, is complete, with `result`, since `now`:
/// the end of the call, for all of them. Most often that is the end of one message, and calls
/// nothing but claim_request().
[[gnu::always_inline]] inline void complete_request(Writer* w, uint64_t now, Handle handle,
                                                    uint64_t newest, Handles requests, int index,
                                                    const Status* status, int result) {
  if (handle == abi.request_null) return;
  RequestRoom room;
  const Request* claimed = claim_request(w, handle, newest, &room);
  if (claimed == nullptr) return;
  if (AON_LIKELY(w != nullptr && is_one_message(*claimed, result))) {
    put_completion(w, now, message_end(*claimed, status));
  } else {
    complete_claimed(w, now, *claimed, handle, requests, index, status, result);
  }
}

/// What a call that completes at most one request keeps across the real call. Where the program
/// ignores the status, `own` takes it: memory apart, so that all else may stay in registers.
class WaitOne {
 public:
  [[gnu::always_inline]] WaitOne(Handles request, Status* status, OwnStatus* own)
      : request_(request),
        status_(status == abi.status_ignore ? own->get() : status),
        handle_(handle_at(request, abi.request_null)) {
    if (AON_UNLIKELY(threads_are_concurrent())) newest_ = last_request_number();
  }

  Status* status() { return status_; }
  /// False of what is complete whenever somebody asks: null, or persistent and not started.
  bool is_active() const { return may_be_active(handle_, newest_); }

  /// The request is complete, with `result`, since `now`: the end of the call.
  [[gnu::always_inline]] void complete(Writer* w, uint64_t now, int result) const {
    complete_request(w, now, handle_, newest_, request_, 0, status_, result);
  }

  /// The same, and the end of the `call` itself.
  [[gnu::always_inline]] void finish(const OpenCall& call, uint64_t now, int result,
                                     uint32_t weight) const {
    RequestRoom room;
    const Request* claimed =
        handle_ == abi.request_null ? nullptr : claim_request(call.w, handle_, newest_, &room);
    if (AON_LIKELY(claimed != nullptr && is_one_message(*claimed, result))) {
      finish_completing(call, now, message_end(*claimed, status_), weight);
      return;
    }
    if (claimed != nullptr)
      complete_claimed(call.w, now, *claimed, handle_, {request_.data, request_.convert}, 0,
                       status_, result);
    finish_span_at(call, now, failed(result), weight);
  }

 private:
  Handles request_;
  Status* status_;
  Handle handle_;
  uint64_t newest_ = 0;  ///< request number; 0: threads took turns (none has it)
};

/// The same for an array of requests.
class WaitMany {
 public:
  /// `status_count`: how many statuses the call writes; 0 or 1 with `status`, or `count` of them.
  [[gnu::always_inline]] WaitMany(int count, Handles requests, int status_count, Status* statuses)
      : count_(requests.is_null() ? 0 : count),
        handles_(inline_handles_),
        statuses_(statuses),
        requests_(requests) {
    const Status* ignore = status_count > 1 ? abi.statuses_ignore : abi.status_ignore;
    if (statuses == ignore) statuses_ = inline_statuses_[0].get();
    if (AON_UNLIKELY(threads_are_concurrent())) newest_ = last_request_number();
    if (AON_UNLIKELY(count_ > kInlineRequests)) {
      prepare(requests, statuses, statuses == ignore);
      return;
    }
    requests.copy(count_, inline_handles_);
  }
  ~WaitMany() {
    if (AON_UNLIKELY(block_ != nullptr)) release_block();
  }
  WaitMany(const WaitMany&) = delete;
  WaitMany& operator=(const WaitMany&) = delete;

  Status* statuses() { return statuses_; }
  /// Whether one of them is.
  bool is_active() const noexcept;

  /// Request `index` is complete, as MPI_Waitany says. One that failed may have freed others that
  /// failed as well (Open MPI).
  void complete_any(Writer* w, uint64_t now, int index, int result) const noexcept;
  /// All are, unless `result` says to look into the statuses.
  void complete_all(Writer* w, uint64_t now, int result) const noexcept;
  /// `outcount` of them, as MPI_Waitsome says; `first` is the index of the first request: 0 in C,
  /// 1 in Fortran.
  void complete_some(Writer* w, uint64_t now, int outcount, const int* indices, int first,
                     int result) const noexcept;

  /// The call was MPI_Startall: follow_start() of each.
  void follow_starts() const noexcept;

 private:
  struct Block;

  /// Request `index` is complete; its status is statuses()[status_index].
  void complete_one(Writer* w, uint64_t now, int index, int status_index,
                    int result) const noexcept;
  void prepare(Handles requests, Status* statuses, bool is_ignored) noexcept;
  bool use_block(int count);
  void release_block();

  int count_;
  Handle* handles_;
  uint64_t newest_ = 0;  ///< request number; 0: threads took turns (none has it)
  Status* statuses_;
  Handles requests_;  ///< the program's
  Block* block_ = nullptr;
  Handle inline_handles_[kInlineRequests];
  OwnStatus inline_statuses_[kInlineRequests];
};

/// Where the library has MPI_Isendrecv: sends three bytes to itself by it, once, to learn whether
/// its statuses can be believed. `communicator` is MPI_COMM_SELF, in MPI_Init, or one that was just
/// made and that nobody else here knows, as a session's first is; one between two groups is passed
/// over.
void learn_exchange_status(Handle communicator) noexcept;

/// MPI_Cancel was called: a request that is freed now tells nobody whether it was in time.
inline void note_cancel(Handles request) noexcept {
  cancel_request(handle_at(request, abi.request_null));
}

/// MPI_Request_get_status said that the request is complete: one that is freed now has ended so.
void note_status(Handle handle, const Status* status, int result) noexcept;

/// The request at `index`, which was `given` before it was started, is known by what it is now.
void follow_start(Handle given, Handles requests, int index) noexcept;

/// A persistent request that MPI_Startall did not start after all.
void put_not_started(Writer* w, const Request& request) noexcept;

/// MPI_Request_free: a send ends here as far as anybody can know; of a receive, read or write
/// nothing is known.
void free_request(Writer* w, Handle handle) noexcept;

}  // namespace aon::mpi
