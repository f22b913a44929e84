#include "mpi/requests.h"

#include <bit>

#include "mpi/library.h"
#include "mpi/request_tables.h"
#include "mpi/state.h"

namespace aon::mpi {

std::atomic<bool> requests_outlive_pause{false};
std::atomic<bool> recording_is_paused{false};
std::atomic<uint64_t> last_number{1};  // the first request has 2: 1 is older than all
std::atomic<uint64_t> last_concurrent_number{0};

namespace {

constexpr uint32_t kStripes = 64;
/// Behind those of the stripes: what is used while threads take turns, and left then.
constexpr uint32_t kInTurns = kStripes;

/// More than calls may still take that have just found that threads take turns: one, or two of one
/// MPI_Isendrecv.
constexpr uint64_t kNumbersOfLateCalls = 1024;

std::atomic<uint64_t> g_unfollowed{0};

/// While paused there is no writer, and of a shared handle nobody knows whose end it is.
bool is_hidden(const Writer* w, Handle handle) { return w == nullptr && is_shared_request(handle); }

Table g_tables[kStripes + 1];
Stack g_stacks[kStripes + 1];
/// While threads are concurrent: bit i, stack i has had a request. Most programs have few threads,
/// and who looks for another one's request is not to look into all stacks for it.
std::atomic<uint64_t> g_used_stacks{0};

void note_used_stack(uint32_t stripe) {
  const uint64_t bit = uint64_t{1} << stripe;
  if ((g_used_stacks.load(std::memory_order_relaxed) & bit) == 0)
    g_used_stacks.fetch_or(bit, std::memory_order_relaxed);
}

/// Which of these are in use.
struct Places {
  uint32_t first;
  uint32_t end;
};
Places places_in_use() {
  return threads_are_concurrent() ? Places{0, kStripes} : Places{kInTurns, kInTurns + 1};
}

Table& table_of(Handle handle) {
  return g_tables[AON_UNLIKELY(threads_are_concurrent()) ? hash_handle(handle) >> 58 : kInTurns];
}

/// While threads are concurrent.
uint32_t stripe_of(const Writer* w) {
  return static_cast<uint32_t>(hash_handle(reinterpret_cast<Handle>(w)) >> 58);
}

/// While threads are concurrent. The requests of a call that found them taking turns were begun by
/// calls before it, which found the same: their numbers are at most the last one given in turns.
uint64_t newest_or_in_turns(uint64_t newest) {
  return newest != 0 ? newest : last_number.load(std::memory_order_relaxed);
}

/// Has `fill` write the request where it is kept: a copy is made in larger pieces than its fields
/// were stored in, and waits for the stores. False: there is no place.
template <class Fill>
[[gnu::always_inline]] inline bool fill_place(Request* place, const Fill& fill) {
  if (AON_LIKELY(place != nullptr)) fill(place);
  return place != nullptr;
}

/// While threads are concurrent. Apart: who needs no lock saves no registers for one.
template <class Fill>
[[gnu::noinline]] bool put_locked(const Writer* w, Handle handle, const Fill& fill) {
  if (is_shared_request(handle)) {
    const uint32_t stripe = stripe_of(w);
    Stack& stack = g_stacks[stripe];
    note_used_stack(stripe);
    Guard guard(&stack.lock);
    return fill_place(stack.place(), fill);
  }
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  return fill_place(table.place(handle), fill);
}

/// False: the request `handle` does not fit.
template <class Fill>
[[gnu::always_inline]] inline bool put(const Writer* w, Handle handle,
                                       const Fill& fill) AON_NO_THREAD_SAFETY_ANALYSIS {
  if (AON_UNLIKELY(handle == 0)) return true;  // no library has it; nobody can complete it
  if (AON_UNLIKELY(threads_are_concurrent())) return put_locked(w, handle, fill);
  Request* place =
      is_shared_request(handle) ? g_stacks[kInTurns].place() : g_tables[kInTurns].place(handle);
  return fill_place(place, fill);
}

void count_unfollowed() {
  const uint64_t before = g_unfollowed.fetch_add(1, std::memory_order_relaxed);
  if (before == 0) requests_overflow();
}

/// Copied under the lock to where no other thread writes.
const Request* in_room(const Request* taken, RequestRoom* room) {
  if (taken == nullptr || taken == room->get()) return taken;
  *room->get() = *taken;
  return room->get();
}

/// The newest request of this thread, else one that another thread has started. Locks only stacks
/// that have any: each lock costs what its threads pay to get it back.
[[gnu::noinline]] const Request* take_shared_locked(const Writer* w, Handle handle,
                                                    RequestRoom* room) {
  const uint32_t own = stripe_of(w);
  const auto turn = static_cast<int>(own);
  uint64_t left = std::rotr(g_used_stacks.load(std::memory_order_relaxed), turn);
  for (; left != 0; left &= left - 1) {
    const auto step = static_cast<uint32_t>(std::countr_zero(left));
    Stack& stack = g_stacks[(own + step) % kStripes];
    if (!stack.has_any()) continue;
    Guard guard(&stack.lock);
    if (const Request* taken = in_room(stack.take(handle, room), room)) return taken;
  }
  return nullptr;
}

[[gnu::always_inline]] inline const Request* take_shared(
    const Writer* w, Handle handle, RequestRoom* room) AON_NO_THREAD_SAFETY_ANALYSIS {
  if (AON_UNLIKELY(threads_are_concurrent())) return take_shared_locked(w, handle, room);
  return g_stacks[kInTurns].take(handle, room);
}

/// The handle that two requests of `start` have at once; 0: each has its own.
template <class Start>
Handle shared_handle_of(const Start& start) {
  uint64_t requests[2] = {};
  Handle handles[2] = {};
  for (int i = 0; i < 2; ++i) {
    if (start(&requests[i]) != kSuccess) return 0;
    handles[i] = load_handle(&requests[i], 0);
  }
  for (uint64_t& request : requests) queries.wait(&request, abi.status_ignore);
  return handles[0] == handles[1] ? handles[0] : 0;
}

}  // namespace

void learn_shared_requests(Handle communicator) noexcept {
  // MPICH from 5 on, with the ABI of MPI 5: handles are addresses, and the requests that are
  // complete at once an array, of which the second is for sends and the third for receives
  // (MPIR_Request_builtins, MPIR_REQUEST_BUILTIN_COUNT; src/include/mpir_request.h).
  constexpr Handle kMpichCount = 0x11;
  constexpr Handle kMaxBytes = 4096;
  if (abi.request_shared_size != 0 || abi.fortran.byte == 0) return;
  if (queries.isend == nullptr || queries.irecv == nullptr || queries.wait == nullptr) return;
  const Handle send = shared_handle_of([communicator](void* request) {
    return queries.isend(nullptr, 0, abi.fortran.byte, abi.proc_null, 0, communicator, request);
  });
  const Handle receive = shared_handle_of([communicator](void* request) {
    return queries.irecv(nullptr, 0, abi.fortran.byte, abi.proc_null, 0, communicator, request);
  });
  const Handle distance = receive - send;
  if (send != 0 && receive != 0 && distance - 1 < kMaxBytes) {
    abi.request_shared = send - distance;
    abi.request_shared_size = kMpichCount * distance;
  } else if (send != 0 || receive != 0) {
    abi.request_shared = send != 0 ? send : receive;
    abi.request_shared_size = 1;
  }
}

void put_request(const Writer* w, const Request& request) noexcept {
  const bool fits = put(w, request.handle, [&](Request* place) { *place = request; });
  if (AON_UNLIKELY(!fits)) count_unfollowed();
}

namespace {

/// A send or receive that has begun. Its kind is known, and stored with all that stands beside it.
template <RequestKind kKind>
[[gnu::always_inline]] inline Request started(Handle handle, uint64_t number,
                                              Communicator* communicator, uint64_t bytes,
                                              uint64_t peer_tag) {
  return {handle, number, bytes, communicator, pair_low(peer_tag), pair_high(peer_tag),
          {0},    kKind,  false};
}

/// put_started() where no place was found at once. It and the next one are reached by jumps: none
/// saves registers for another.
template <RequestKind kKind>
[[gnu::noinline]] void put_started_slow(Handle handle, uint64_t number, Communicator* communicator,
                                        uint64_t bytes, uint64_t peer_tag) {
  const bool fits = put(writer(), handle, [=](Request* place) {
    *place = started<kKind>(handle, number, communicator, bytes, peer_tag);
  });
  if (AON_UNLIKELY(!fits)) count_unfollowed();
}
template <RequestKind kKind>
[[gnu::noinline]] void put_started_in_table(Handle handle, uint64_t number,
                                            Communicator* communicator, uint64_t bytes,
                                            uint64_t peer_tag) AON_NO_THREAD_SAFETY_ANALYSIS {
  Request* place = g_tables[kInTurns].place_at_once(handle);
  if (AON_UNLIKELY(place == nullptr)) {
    return put_started_slow<kKind>(handle, number, communicator, bytes, peer_tag);
  }
  *place = started<kKind>(handle, number, communicator, bytes, peer_tag);
}

}  // namespace

template <RequestKind kKind>
void put_started(Handle handle, uint64_t number, Communicator* communicator, uint64_t bytes,
                 uint64_t peer_tag) noexcept AON_NO_THREAD_SAFETY_ANALYSIS {
  const bool is_locked = AON_UNLIKELY(threads_are_concurrent());
  if (!is_locked && !is_shared_request(handle)) {
    return put_started_in_table<kKind>(handle, number, communicator, bytes, peer_tag);
  }
  Request* place = is_locked ? nullptr : g_stacks[kInTurns].place_at_once();
  if (AON_UNLIKELY(place == nullptr)) {
    return put_started_slow<kKind>(handle, number, communicator, bytes, peer_tag);
  }
  *place = started<kKind>(handle, number, communicator, bytes, peer_tag);
}
template void put_started<RequestKind::kSend>(Handle, uint64_t, Communicator*, uint64_t,
                                              uint64_t) noexcept;
template void put_started<RequestKind::kReceive>(Handle, uint64_t, Communicator*, uint64_t,
                                                 uint64_t) noexcept;

void reckon_with_threads() noexcept {
  if (threads_are_concurrent()) return;
  last_concurrent_number.store(last_request_number() + kNumbersOfLateCalls,
                               std::memory_order_relaxed);
  has_concurrent_threads.store(true, std::memory_order_release);  // pairs with mpi:threads
  const auto put_again = [](const Request& request) { put_request(nullptr, request); };
  {
    Guard guard(&g_tables[kInTurns].lock);
    g_tables[kInTurns].leave(put_again);
  }
  Guard guard(&g_stacks[kInTurns].lock);
  g_stacks[kInTurns].leave(put_again);
}

void pause_requests(bool is_paused, bool has_splits) noexcept {
  recording_is_paused.store(is_paused, std::memory_order_relaxed);
  bool are_any = is_paused && has_splits;
  const Places places = places_in_use();
  for (uint32_t i = places.first; is_paused && !are_any && i < places.end; ++i) {
    Guard guard(&g_tables[i].lock);
    are_any = !g_tables[i].is_empty();
  }
  requests_outlive_pause.store(are_any, std::memory_order_relaxed);
}

uint64_t unfollowed_requests() noexcept { return g_unfollowed.load(std::memory_order_relaxed); }

uint64_t request_number(Handle handle) noexcept {
  if (is_shared_request(handle)) return kAnyShared;
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  const Request* entry = table.find(handle);
  return entry != nullptr ? entry->number : 0;
}

bool may_be_active(Handle handle, uint64_t newest) noexcept {
  if (handle == abi.request_null) return false;
  if (is_shared_request(handle)) return true;
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  const Request* entry = table.find(handle);
  return entry == nullptr || entry->number != 0 ||
         (threads_are_concurrent() &&
          table.find_displaced(handle, newest_or_in_turns(newest)) != nullptr);
}

bool is_untold(Handle given) noexcept {
  const Handle handle = canonical(given);
  if (handle == abi.request_null || is_shared_request(handle)) return false;
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  const Request* entry = table.find(handle);
  return entry == nullptr || (entry->number != 0 && !entry->is_told);
}

bool has_requests_of_c() noexcept {
  return has_seen_c.load(std::memory_order_relaxed) &&
         (threads_are_concurrent() || g_tables[kInTurns].has_requests_of_c());
}

bool knows_request(Handle handle) noexcept {
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  return table.find(handle) != nullptr;
}

void request_crosses(int32_t number, Handle given) noexcept {
  const Handle handle = canonical(given);
  Request begun;
  if (!forget_request(nullptr, request_of_fortran(number), &begun)) return;
  if (handle == abi.request_null || is_shared_request(handle)) return;
  // One of the two was left behind, and what it had came back.
  if (request_number(handle) > begun.number) return;
  begun.handle = handle;
  put_request(nullptr, begun);
}

namespace {

/// `entry` goes on, but not as it is.
const Request* end_in_room(Request* entry, RequestRoom* room) {
  *room->get() = *entry;
  entry->number = 0;
  return room->get();
}

/// See claim_request().
[[gnu::always_inline]] inline const Request* take_from(Table* table, Handle handle, uint64_t newest,
                                                       RequestRoom* room)
    AON_REQUIRES(table->lock) {
  Request* entry = table->find(handle);
  const bool is_live = entry != nullptr && entry->number != 0;
  if (AON_UNLIKELY(newest != 0) && (!is_live || entry->number > newest)) {
    Request* displaced = table->find_displaced(handle, newest);
    return displaced != nullptr ? end_in_room(displaced, room) : nullptr;
  }
  if (AON_UNLIKELY(!is_live)) return nullptr;
  if (AON_UNLIKELY(entry->is_persistent)) return end_in_room(entry, room);
  return table->remove(entry, room);
}

[[gnu::noinline]] const Request* take_locked(Handle handle, uint64_t newest, RequestRoom* room) {
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  return in_room(take_from(&table, handle, newest_or_in_turns(newest), room), room);
}

/// A request that was taken, with its handle.
bool copy_taken(const Request* taken, Handle handle, Request* out) {
  if (taken == nullptr) return false;
  *out = *taken;
  out->handle = handle;
  return true;
}

/// Reached by a jump that moves no argument.
[[gnu::noinline]] const Request* claim_anywhere(const Writer* w, Handle handle, uint64_t newest,
                                                RequestRoom* room) AON_NO_THREAD_SAFETY_ANALYSIS {
  if (is_hidden(w, handle)) return nullptr;
  if (is_shared_request(handle)) return take_shared(w, handle, room);
  if (AON_UNLIKELY(threads_are_concurrent())) return take_locked(handle, newest, room);
  return take_from(&g_tables[kInTurns], handle, newest, room);
}

}  // namespace

const Request* claim_request(const Writer* w, Handle handle, uint64_t newest,
                             RequestRoom* room) noexcept AON_NO_THREAD_SAFETY_ANALYSIS {
  if (is_shared_request(handle) && w != nullptr && AON_LIKELY(!threads_are_concurrent())) {
    if (const Request* taken = g_stacks[kInTurns].take_newest(handle)) return taken;
  }
  return claim_anywhere(w, handle, newest, room);
}

bool take_request(const Writer* w, Handle handle, uint64_t newest, Request* out) noexcept {
  RequestRoom room;
  return copy_taken(claim_request(w, handle, newest, &room), handle, out);
}

void cancel_request(Handle handle) noexcept {
  if (is_shared_request(handle)) return;  // was complete when it was started
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry != nullptr) entry->is_cancelled = true;
}

void tell_request(Handle handle, const Told& told) noexcept {
  if (is_shared_request(handle)) return;  // all of them are alike
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry == nullptr || entry->number == 0) return;
  const bool is_exchange = entry->kind == RequestKind::kExchange;
  const bool is_receive = is_exchange || entry->kind == RequestKind::kReceive;
  if (!is_receive && entry->kind != RequestKind::kSend && entry->kind != RequestKind::kFile) return;
  if (is_receive && (is_exchange ? entry->source : entry->peer) == kNoPeer) return;
  // A file's cannot be cancelled; Open MPI 4.1 leaves that field as it was.
  entry->is_cancelled = told.is_cancelled && entry->kind != RequestKind::kFile;
  entry->is_told = true;
  entry->bytes_received = told.bytes;
  entry->told_tag = told.tag;
  if (is_receive) entry->source = peer_in(*entry->communicator, told.source);
}

void mark_communicators_in_use() noexcept {
  const auto mark = [](const Request& request) {
    if (request.communicator != nullptr) request.communicator->is_in_use = true;
  };
  const Places places = places_in_use();
  for (uint32_t i = places.first; i < places.end; ++i) {
    {
      Guard guard(&g_tables[i].lock);
      g_tables[i].visit(mark);
    }
    Guard guard(&g_stacks[i].lock);
    g_stacks[i].visit(mark);
  }
}

bool activate_request(Handle handle, Request* out) noexcept {
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry == nullptr || !entry->is_persistent) return false;
  entry->number = next_request_number();
  entry->is_cancelled = false;
  entry->is_told = false;
  if (entry->kind == RequestKind::kCollective) ++entry->start_count;
  *out = *entry;
  return true;
}

bool count_refused_start(Handle handle, Request* out) noexcept {
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry == nullptr || !entry->is_persistent || entry->kind != RequestKind::kCollective)
    return false;
  ++entry->start_count;
  *out = *entry;
  out->number = out->bytes = out->bytes_received = 0;
  return true;
}

bool forget_request(const Writer* w, Handle handle, Request* out) noexcept {
  RequestRoom room;
  if (is_hidden(w, handle)) return false;
  if (is_shared_request(handle)) return copy_taken(take_shared(w, handle, &room), handle, out);
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry == nullptr) return false;
  *out = *entry;
  table.remove(entry);
  return true;
}

}  // namespace aon::mpi
