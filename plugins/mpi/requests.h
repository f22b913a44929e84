/// The live requests of the process: what a Wait or Test must know of the call that started them.
///
///     start call --put()--> live --take() by the call that completes it--> gone
///     *_init ----put()----> inactive --activate_request() by Start--> live --take()--> inactive
///     MPI_Request_free: forget()
///
/// A request has a number that is never used again and grows; MPI's handles are. With
/// MPI_THREAD_MULTIPLE a handle that one thread has just completed may come back in another
/// thread's new request before the first has told us. So a call that waits looks before it waits
/// which number was the last, and takes none that is newer: its own requests were all started
/// before. An entry that was left behind (completed by the library itself) is replaced when its
/// handle comes back. While the recording is paused, calls that complete or free requests go on
/// taking them out, untold, as long as the table has any; of shared handles (below) they do not,
/// for a pause does not say how many it started. What a pause prepares is put as well: it may be
/// started when the recording goes on.
///
/// A library may give one handle to all requests that were complete when they were started (eager
/// sends of Open MPI; MPICH has one per kind). These lie on a stack per thread: they are alike but
/// for their number, and the thread that started one most probably completes it. Where no name
/// tells which handles these are, requests that go nowhere do: in MPI_Init, and on a communicator
/// made of a group, as a session's first is.
///
/// A request that Fortran has begun has the INTEGER as its handle here (request_of_fortran()), for
/// to ask the library for C's costs more than the rest. The two languages meet in MPI_Request_f2c
/// and MPI_Request_c2f: from then on it is known by C's. A call of Fortran is given one by either.
/// Who converts by PMPI_Request_f2c what Fortran has begun, and completes it in C, is not followed.
///
/// The table is bounded: what does not fit is not followed, counted (unfollowed_requests()) and
/// said in the ledger. Its call is recorded all the same; its completion is not.
///
/// Thread: any; striped locks while threads are concurrent, else none.   Signal: no.
/// Cost: 2-5 ns; maps memory only when more requests are live than ever before.
#pragma once

#include <aon/writer.h>

#include "mpi/call.h"
#include "mpi/communicators.h"
#include "mpi/handle_map.h"
#include "mpi/handles.h"
#include "mpi/lock.h"

namespace aon::mpi {

enum class RequestKind : uint8_t {
  kSend,
  kReceive,
  kCollective,
  kExchange,  ///< MPI_Isendrecv: the send has `number`, the receive the next one
  kRma,       ///< MPI_Rput and its like
  kFile,      ///< a read or write; peer: the file's id, tag: IoOperation + 256 * IoFlags
  kMessage,   ///< not a request: a matched probe's message, received by Mrecv or Imrecv
};

struct Request {
  Handle handle;
  uint64_t number;  ///< in records; 0: an inactive persistent request
  uint64_t bytes;   ///< sent
  Communicator* communicator;
  int32_t peer;  ///< kCollective: the root, as records have it; kRma: the target
  int32_t tag;   ///< kCollective, kRma: the operation
  union {
    uint32_t preparation;  ///< kCollective, persistent: count on the communicator
    int32_t source;        ///< kExchange: the peer of the receive; told: who sent
    uint32_t window;       ///< kRma: id of the window; `communicator` is null
  };
  RequestKind kind;
  bool is_persistent : 1;
  bool is_cancelled : 1 = false;  ///< MPI_Cancel was called: whether it was in time, its end says
  bool is_from_all : 1 = false;   ///< kCollective, persistent: kFromAll
  bool is_partitioned : 1 = false;
  bool is_told : 1 = false;     ///< MPI_Request_get_status has told what it received; kRma: its
                                ///< completion stands in the records already
  uint8_t unused : 3 = 0;       ///< the byte is whole: it is stored, not changed
  uint16_t channel = 0;         ///< partitioned: which of its envelope (aon/mpi.h)
  uint64_t bytes_received = 0;  ///< kCollective; told
  uint32_t start_count = 0;     ///< kCollective, persistent: how often it was started
  int32_t told_tag = 0;
};
static_assert(sizeof(Request) == 64, "the tables' bound in bytes");

/// What a status says of a request that is complete.
struct Told {
  int32_t source;
  int32_t tag;
  uint64_t bytes;
  bool is_cancelled;
};

/// Live requests that surely fit where one thread at a time calls MPI; with MPI_THREAD_MULTIPLE
/// their places are shared by 64 tables. Tables and stacks take at most 16 MiB each, beside what
/// they had where threads become concurrent later.
constexpr uint64_t kMaxLiveRequests = 1u << 17;

/// The last number that was given while threads took turns, and since they are concurrent, which
/// begins far above. Two, for a call that has just found that threads take turns may store the one
/// while another thread, whose first session has begun, adds to the other: stored where that one
/// adds, a number would be given twice.
[[gnu::visibility("hidden")]] extern std::atomic<uint64_t> last_number;
[[gnu::visibility("hidden")]] extern std::atomic<uint64_t> last_concurrent_number;

/// While threads are concurrent: where they count. It was set before they were.
inline std::atomic<uint64_t>& concurrent_number() {
  has_concurrent_threads.load(std::memory_order_acquire);  // pairs with mpi:threads
  return last_concurrent_number;
}

/// The last number so far: no request that was started before has a greater one.
inline uint64_t last_request_number() {
  const auto& last = AON_UNLIKELY(threads_are_concurrent()) ? concurrent_number() : last_number;
  return last.load(std::memory_order_relaxed);
}

/// The first of the next `count` numbers.
[[gnu::always_inline]] inline uint64_t next_request_numbers(uint64_t count) {
  if (AON_UNLIKELY(threads_are_concurrent()))
    return concurrent_number().fetch_add(count, std::memory_order_relaxed) + 1;
  const uint64_t last = last_number.load(std::memory_order_relaxed);
  last_number.store(last + count, std::memory_order_relaxed);
  return last + 1;
}
[[gnu::always_inline]] inline uint64_t next_request_number() { return next_request_numbers(1); }

constexpr uint64_t kAnyShared = ~uint64_t{0};  ///< request_number() of the shared handle

/// Finds out which handles are shared, where that is not known, by requests of `communicator`.
void learn_shared_requests(Handle communicator) noexcept;

void put_request(const Writer* w, const Request& request) noexcept;

/// The same of a send or receive that the calling thread has just begun.
template <RequestKind kKind>
void put_started(Handle handle, uint64_t number, Communicator* communicator, uint64_t bytes,
                 uint64_t peer_tag) noexcept AON_NO_THREAD_SAFETY_ANALYSIS;
extern template void put_started<RequestKind::kSend>(Handle, uint64_t, Communicator*, uint64_t,
                                                     uint64_t) noexcept;
extern template void put_started<RequestKind::kReceive>(Handle, uint64_t, Communicator*, uint64_t,
                                                        uint64_t) noexcept;

/// From now on threads call MPI at once. Requests that were begun before are found where each then
/// is looked for.
void reckon_with_threads() noexcept;

/// Requests that did not fit so far.
uint64_t unfollowed_requests() noexcept;

/// True while the recording is paused and requests or split collectives live that were recorded.
[[gnu::visibility("hidden")]] extern std::atomic<bool> requests_outlive_pause;
[[gnu::always_inline]] inline bool is_passing_requests() {
  return AON_UNLIKELY(requests_outlive_pause.load(std::memory_order_relaxed));
}

/// Whether the program has paused the recording.
extern std::atomic<bool> recording_is_paused;

/// The recording is about to be paused, or goes on.
void pause_requests(bool is_paused, bool has_splits) noexcept;

/// Whether a call that prepares a request is followed although it is not recorded. After enter().
inline bool is_followed_unseen(Writer* w) {
  return recording_is_paused.load(std::memory_order_relaxed) && library_is_known() &&
         !is_inside_call(w);
}

/// The end of such a call, or of one that is recorded. False: it has prepared none.
inline bool finish_preparing(const OpenCall& call, int result) {
  if (AON_LIKELY(call.w != nullptr)) {
    finish_span(call, failed(result));
  } else if (result == kSuccess) {
    requests_outlive_pause.store(true, std::memory_order_relaxed);
  }
  return result == kSuccess;
}

/// The number of the live request `handle`; 0: none.
uint64_t request_number(Handle handle) noexcept;

/// False: null, or a persistent request that is not started. `newest` as for take_request(): the
/// handle may have come back as such a one since.
bool may_be_active(Handle handle, uint64_t newest) noexcept;

/// Whether MPI_Request_get_status has something to tell of `handle`, which is complete: not if it
/// is not active, or has been told.
bool is_untold(Handle handle) noexcept;

/// Whether some request may be known by C's handle, and whether the one of `handle` is.
bool has_requests_of_c() noexcept;
bool knows_request(Handle handle) noexcept;

/// The program has been told that Fortran's `number` and C's `handle` are the same request.
void request_crosses(int32_t number, Handle handle) noexcept;

/// Room for a request, not initialised.
struct RequestRoom {
  alignas(Request) char bytes[sizeof(Request)];
  Request* get() { return reinterpret_cast<Request*>(bytes); }
};

/// Takes the live request `handle` out, the newest that has no greater number than `newest` (0,
/// which none has: the caller found that threads take turns; whatever it has where they still do,
/// else the newest that was begun in turns). A persistent one becomes inactive. Returns where it
/// stands, all but its handle, until this thread puts another one: where it was kept, or in `room`.
/// Null: unknown or inactive. `w` null: while paused, as for forget_request().
const Request* claim_request(const Writer* w, Handle handle, uint64_t newest,
                             RequestRoom* room) noexcept;

/// The same, copied to `out`. False: unknown or inactive.
bool take_request(const Writer* w, Handle handle, uint64_t newest, Request* out) noexcept;

/// MPI_Cancel of the live request `handle`.
void cancel_request(Handle handle) noexcept;

/// The live request `handle` is complete, and the program knows what it received.
void tell_request(Handle handle, const Told& told) noexcept;

/// Marks the communicators of all requests, live or not, as in use.
void mark_communicators_in_use() noexcept;

/// Makes the persistent request `handle` live and gives it a number. False: unknown.
bool activate_request(Handle handle, Request* out) noexcept;

/// MPI refused to start the persistent request `handle`. Of a collective this counts as one of its
/// starts, and `out` moves nothing: it may have been refused on all members. False: it is none.
bool count_refused_start(Handle handle, Request* out) noexcept;

/// Removes `handle`, live or not. False: unknown.
bool forget_request(const Writer* w, Handle handle, Request* out) noexcept;

}  // namespace aon::mpi
