/// Windows of one-sided communication: what a record of it needs (id, bytes, group) behind one
/// look-up by handle, and their identity, which all members compute alike without communicating:
///
///     identity = hash(identity of the communicator, windows made on it so far)
///
/// A window is made collectively, so all members count alike; it is counted in every mode. One that
/// was made where we do not look (by PMPI names) has id 0: its calls say when, and nothing more.
///
/// A target is a rank of the window's communicator; MPI_PROC_NULL is kNoPeer and moves no bytes.
/// Bytes are count times size of the origin's type; MPI_NO_OP sends none. Of MPI_Compare_and_swap
/// one element counts each way.
///
/// Owner: a freed handle leaves the table, and its entry is used again.
/// Thread: look-ups take no lock; changes take one.   Signal: no.
/// Cost: about 3 ns; MPI_Win_start and MPI_Win_post translate their group, inside the span: below
/// 1 us, but Open MPI looks through the world for each rank of it, about 1 ns per rank passed.
#pragma once

#include <aon/definition.h>
#include <aon/mpi_records.h>
#include <aon/record.h>

#include <atomic>

#include "mpi/call.h"
#include "mpi/collectives.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/handles.h"
#include "mpi/requests.h"

namespace aon::mpi {

struct Window {
  uint32_t id;  ///< in records; 0 is no window that we know
  WindowFlavour flavour;
  std::atomic<uint32_t> access_group;    ///< of the last MPI_Win_start
  std::atomic<uint32_t> exposure_group;  ///< of the last MPI_Win_post
  Window* next_free;
};

/// The window of `handle`; an entry with id 0 where nothing is known.
Window* find_window(Handle handle) noexcept;

/// How often a window was made on `c`, this one included: the second input of the identity.
inline uint32_t count_window(Communicator* c) {
  return c->window_count.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Defines the window that was made as the `number`th on `c`, and returns it.
Window* add_window(const Communicator& c, uint32_t number, Handle handle,
                   WindowFlavour flavour) noexcept;

void name_window(const Window& window, const char* name);

/// Takes a handle that is about to be freed out of the table: another thread may get it before we
/// are back. An entry with id 0 where nothing is known.
Window* take_window(Handle handle) noexcept;

/// The window is freed, which the trace is told, or, when MPI refused, still there.
void end_window(Window* taken, Handle handle, int result) noexcept;

/// The id of a group's definition, made at its first use; 0: all members of the window stand for
/// it.
uint32_t group_id(Handle group) noexcept;

// Bytes of an operation, {to the target, back} ---------------------------------------------------

[[gnu::always_inline]] inline Bytes puts(int64_t count, Handle type) {
  return {bytes_of(count, type), 0};
}
[[gnu::always_inline]] inline Bytes gets(int64_t count, Handle type) {
  return {0, bytes_of(count, type)};
}
[[gnu::always_inline]] inline Bytes swaps(Handle type) {
  return {bytes_of(1, type), bytes_of(1, type)};
}
[[gnu::always_inline]] inline bool sends_nothing(Handle operation) {
  return canonical(operation) == abi.operation_none;
}
[[gnu::always_inline]] inline Bytes fetches(Handle type, Handle operation) {
  return {sends_nothing(operation) ? 0 : bytes_of(1, type), bytes_of(1, type)};
}
[[gnu::always_inline]] inline Bytes fetches_all(int64_t count, Handle type, int64_t result_count,
                                                Handle result_type, Handle operation) {
  return {sends_nothing(operation) ? 0 : bytes_of(count, type),
          bytes_of(result_count, result_type)};
}

// Records ----------------------------------------------------------------------------------------

/// `target` as the records have it.
[[gnu::always_inline]] inline int32_t target_in_window(int target) {
  return AON_LIKELY(target >= 0) ? target : kNoPeer;
}

/// A call that synchronizes, with one target or (kAnyPeer) all.
[[gnu::always_inline]] inline void finish_window_call(const OpenCall& call, RmaOperation operation,
                                                      const Window& window, int32_t target,
                                                      uint32_t group, int result) {
  finish_rma(call, failed(result), window.id, 0, 0,
             pack_pair(target, static_cast<int32_t>(operation)), group);
}

/// A call that moves data.
[[gnu::always_inline]] inline void finish_transfer(const OpenCall& call, RmaOperation operation,
                                                   const Window& window, int target, Bytes bytes,
                                                   int result) {
  const int32_t to = target_in_window(target);
  if (AON_UNLIKELY(to == kNoPeer)) bytes = {0, 0};
  finish_rma(call, failed(result), window.id, bytes.sent, bytes.received,
             pack_pair(to, static_cast<int32_t>(operation)), 0);
}

/// The same with a request. A call that failed starts none. One with a handle that it shares is
/// complete; what is completed by that handle later may be another one, after the window's end.
[[gnu::always_inline]] inline void finish_start_transfer(const OpenCall& call,
                                                         RmaOperation operation,
                                                         const Window& window, int target,
                                                         Bytes bytes, Handles request, int result) {
  if (AON_UNLIKELY(result != kSuccess)) {
    finish_span(call, kFailed);
    return;
  }
  const int32_t to = target_in_window(target);
  if (AON_UNLIKELY(to == kNoPeer)) bytes = {0, 0};
  const uint64_t number = next_request_number();
  const Handle handle = load_handle(request);
  const bool is_complete = is_shared_request(handle);
  if (AON_UNLIKELY(is_complete)) {
    put_completion(call.w, ticks(call.w), 0, window.id, bytes.sent,
                   pack_pair(to, static_cast<int32_t>(operation)), number);
  }
  finish_rma(call, kNonblocking, window.id, bytes.sent, bytes.received,
             pack_pair(to, static_cast<int32_t>(operation)), number);
  Request started = {handle,     number,
                     bytes.sent, nullptr,
                     to,         static_cast<int32_t>(operation),
                     {0},        RequestKind::kRma,
                     false};
  started.window = window.id;
  started.is_told = is_complete;  // kept, so that its wait takes no other request
  put_request(call.w, started);
}

/// MPI_Win_create and its like, MPI_Win_free.
[[gnu::always_inline]] inline RmaOperation creation_of(WindowFlavour flavour) {
  const bool is_allocated =
      flavour == WindowFlavour::kAllocate || flavour == WindowFlavour::kShared;
  return is_allocated ? RmaOperation::kCreateAllocated : RmaOperation::kCreate;
}
[[gnu::always_inline]] inline RmaOperation end_of(WindowFlavour flavour) {
  return creation_of(flavour) == RmaOperation::kCreate ? RmaOperation::kFree
                                                       : RmaOperation::kFreeAllocated;
}

[[gnu::always_inline]] inline RmaOperation lock_operation(int lock_type) {
  return lock_type == abi.lock_exclusive ? RmaOperation::kLockExclusive : RmaOperation::kLockShared;
}

/// The record of an MPI_Win_test that was not timed and succeeded, or failed.
void record_tested(const Site& site, Handle window, int result) noexcept;

}  // namespace aon::mpi
