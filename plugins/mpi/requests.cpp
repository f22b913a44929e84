#include "mpi/requests.h"

#include <string.h>

#include <utility>

#include "mpi/library.h"
#include "mpi/state.h"

namespace aon::mpi {

std::atomic<bool> requests_outlive_pause{false};
std::atomic<bool> recording_is_paused{false};

namespace {

constexpr uint32_t kStripes = 64;
constexpr uint64_t kFirstCapacity = 1024;
constexpr uint32_t kDisplaced = 16;
constexpr uint64_t kMaxEntries = 2 * kMaxLiveRequests;  ///< of all tables; as many of all stacks

std::atomic<uint64_t> g_unfollowed{0};
std::atomic<bool> g_has_seen_c{false};  ///< a request was known by C's handle

/// While paused there is no writer, and of a shared handle nobody knows whose end it is.
bool is_hidden(const Writer* w, Handle handle) { return w == nullptr && is_shared_request(handle); }

/// How many entries the tables, or the stacks, may still take.
class Allowance {
 public:
  bool take(uint64_t count) {
    const uint64_t before = taken_.fetch_add(count, std::memory_order_relaxed);
    if (before + count <= kMaxEntries) return true;
    taken_.fetch_sub(count, std::memory_order_relaxed);
    return false;
  }
  void give_back(uint64_t count) { taken_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> taken_{0};
};
Allowance g_table_entries;
Allowance g_stack_entries;

/// Zeroed memory for `count` requests more than `old_count`, or null.
Request* map_requests(Allowance* allowance, uint64_t old_count, uint64_t count) {
  if (!allowance->take(count - old_count)) return nullptr;
  return static_cast<Request*>(map_bytes(count * sizeof(Request)));
}

/// Open addressing with linear probing; removal moves the followers up, so nothing is left behind.
class Table {
 public:
  Request* find(Handle handle) AON_REQUIRES(lock) {
    if (entries_ == nullptr || handle == 0) return nullptr;  // 0 marks a free entry
    for (uint64_t at = hash_handle(handle);; ++at) {
      Request& entry = entries_[at & mask_];
      if (entry.handle == handle) return &entry;
      if (entry.handle == 0) return nullptr;
    }
  }

  /// False: it does not fit.
  bool put(const Request& request) AON_REQUIRES(lock) {
    if (request.handle == 0) return true;  // no library has it; nobody can complete it
    if ((count_ + 1) * 2 > capacity() && !grow()) return false;
    Request& entry = slot_of(request.handle);
    if (entry.handle == 0) count_in(request.handle, 1);
    if (entry.handle != 0 && threads_are_concurrent()) {
      displaced_[displaced_count_++ % kDisplaced] = entry;
    }
    entry = request;
    return true;
  }

  /// A request whose handle came back before its completion was told: the newest that is not
  /// newer than `newest`. Null: there is none.
  Request* find_displaced(Handle handle, uint64_t newest) AON_REQUIRES(lock) {
    Request* found = nullptr;
    for (Request& request : displaced_) {
      if (request.handle != handle || request.number == 0 || request.number > newest) continue;
      if (found == nullptr || request.number > found->number) found = &request;
    }
    return found;
  }

  void remove(Request* entry) AON_REQUIRES(lock) {
    count_in(entry->handle, ~uint64_t{0});
    uint64_t hole = static_cast<uint64_t>(entry - entries_);
    for (uint64_t at = hole + 1;; ++at) {
      const Request& next = entries_[at & mask_];
      if (next.handle == 0) break;
      const uint64_t distance_from_home = (at - hash_handle(next.handle)) & mask_;
      if (distance_from_home < ((at - hole) & mask_)) continue;
      entries_[hole & mask_] = next;
      hole = at;
    }
    entries_[hole & mask_].handle = 0;
  }

  /// To an empty one.
  void move_to(Table* other) AON_REQUIRES(lock, other->lock) {
    other->entries_ = std::exchange(entries_, nullptr);
    other->mask_ = std::exchange(mask_, 0);
    other->count_ = std::exchange(count_, 0);
    other->fortran_count_ = std::exchange(fortran_count_, 0);
  }

  /// Takes all entries out, each of which goes to `put`.
  template <class Put>
  void empty(const Put& put) AON_REQUIRES(lock) {
    Request* old = entries_;
    const uint64_t old_capacity = capacity();
    if (old == nullptr) return;
    entries_ = nullptr;
    mask_ = count_ = fortran_count_ = 0;
    g_table_entries.give_back(old_capacity);
    for (uint64_t i = 0; i < old_capacity; ++i) {
      if (old[i].handle != 0) put(old[i]);
    }
    munmap(old, old_capacity * sizeof(Request));
  }

  template <class Visit>
  void visit(const Visit& visit) AON_REQUIRES(lock) {
    for (uint64_t i = 0; i < capacity(); ++i) {
      if (entries_[i].handle != 0) visit(entries_[i]);
    }
    for (Request& request : displaced_) {
      if (request.number != 0) visit(request);
    }
  }

  bool is_empty() const AON_REQUIRES(lock) { return count_ == 0; }
  /// Only while threads take turns.
  bool has_requests_of_c() const AON_NO_THREAD_SAFETY_ANALYSIS { return count_ != fortran_count_; }

  SpinLock lock;

 private:
  void count_in(Handle handle, uint64_t change) AON_REQUIRES(lock) {
    count_ += change;
    if ((handle & kOfFortran) != 0) {
      fortran_count_ += change;
    } else if (AON_UNLIKELY(!g_has_seen_c.load(std::memory_order_relaxed))) {
      g_has_seen_c.store(true, std::memory_order_relaxed);
    }
  }
  uint64_t capacity() const AON_REQUIRES(lock) { return entries_ != nullptr ? mask_ + 1 : 0; }

  Request& slot_of(Handle handle) AON_REQUIRES(lock) {
    uint64_t at = hash_handle(handle);
    while (entries_[at & mask_].handle != 0 && entries_[at & mask_].handle != handle) ++at;
    return entries_[at & mask_];
  }

  /// Half full is full: probes stay short. False: it may not grow, or there is no memory.
  bool grow() AON_REQUIRES(lock) {
    Request* old = entries_;
    const uint64_t old_capacity = capacity();
    const uint64_t new_capacity = old_capacity != 0 ? old_capacity * 2 : kFirstCapacity;
    Request* fresh = map_requests(&g_table_entries, old_capacity, new_capacity);
    if (fresh == nullptr) return false;
    entries_ = fresh;
    mask_ = new_capacity - 1;
    for (uint64_t i = 0; i < old_capacity; ++i) {
      if (old[i].handle != 0) slot_of(old[i].handle) = old[i];
    }
    if (old != nullptr) munmap(old, old_capacity * sizeof(Request));
    return true;
  }

  Request* entries_ AON_GUARDED_BY(lock) = nullptr;
  uint64_t mask_ AON_GUARDED_BY(lock) = 0;
  uint64_t count_ AON_GUARDED_BY(lock) = 0;
  uint64_t fortran_count_ AON_GUARDED_BY(lock) = 0;  ///< of these
  uint32_t displaced_count_ AON_GUARDED_BY(lock) = 0;
  Request displaced_[kDisplaced] AON_GUARDED_BY(lock) = {};
};

/// The requests of shared handles that one stripe of threads has started. A library may have
/// several such handles, one per kind of request.
class Stack {
 public:
  /// False: it does not fit.
  bool push(const Request& request) AON_REQUIRES(lock) {
    if (count_ == capacity_ && !grow()) return false;
    entries_[count_++] = request;
    return true;
  }
  /// Takes the newest of `handle`.
  bool take(Handle handle, Request* out) AON_REQUIRES(lock) {
    uint64_t at = count_;
    while (at != 0 && entries_[at - 1].handle != handle) --at;
    if (at == 0) return false;
    *out = entries_[at - 1];
    --count_;
    if (at <= count_) memmove(&entries_[at - 1], &entries_[at], (count_ - at + 1) * sizeof *out);
    return true;
  }
  template <class Visit>
  void visit(const Visit& visit) AON_REQUIRES(lock) {
    for (uint64_t i = 0; i < count_; ++i) visit(entries_[i]);
  }

  SpinLock lock;

 private:
  bool grow() AON_REQUIRES(lock) {
    const uint64_t new_capacity = capacity_ != 0 ? capacity_ * 2 : kFirstCapacity;
    Request* fresh = map_requests(&g_stack_entries, capacity_, new_capacity);
    if (fresh == nullptr) return false;
    if (entries_ != nullptr) {
      memcpy(fresh, entries_, count_ * sizeof(Request));
      munmap(entries_, capacity_ * sizeof(Request));
    }
    entries_ = fresh;
    capacity_ = new_capacity;
    return true;
  }

  Request* entries_ AON_GUARDED_BY(lock) = nullptr;
  uint64_t count_ AON_GUARDED_BY(lock) = 0;
  uint64_t capacity_ AON_GUARDED_BY(lock) = 0;
};

Table g_tables[kStripes];
Stack g_stacks[kStripes];
std::atomic<uint64_t> g_last_number{1};  // the first request has 2: 1 is older than all

Table& table_of(Handle handle) {
  return g_tables[AON_UNLIKELY(threads_are_concurrent()) ? hash_handle(handle) >> 58 : 0];
}

uint32_t stripe_of(const Writer* w) {
  if (AON_LIKELY(!threads_are_concurrent())) return 0;
  return static_cast<uint32_t>(hash_handle(reinterpret_cast<Handle>(w)) >> 58);
}

bool put(const Writer* w, const Request& request) {
  if (AON_UNLIKELY(is_shared_request(request.handle))) {
    Stack& stack = g_stacks[stripe_of(w)];
    Guard guard(&stack.lock);
    return stack.push(request);
  }
  Table& table = table_of(request.handle);
  Guard guard(&table.lock);
  return table.put(request);
}

/// The newest request of this thread, else one that another thread has started.
bool take_shared(const Writer* w, Handle handle, Request* out) {
  const uint32_t own = stripe_of(w);
  const uint32_t stripe_count = threads_are_concurrent() ? kStripes : 1;
  for (uint32_t i = 0; i < stripe_count; ++i) {
    Stack& stack = g_stacks[(own + i) % kStripes];
    Guard guard(&stack.lock);
    if (stack.take(handle, out)) return true;
  }
  return false;
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

uint64_t next_request_numbers(uint64_t count) noexcept {
  if (AON_UNLIKELY(threads_are_concurrent()))
    return g_last_number.fetch_add(count, std::memory_order_relaxed) + 1;
  const uint64_t last = g_last_number.load(std::memory_order_relaxed);
  g_last_number.store(last + count, std::memory_order_relaxed);
  return last + 1;
}

uint64_t last_request_number() noexcept { return g_last_number.load(std::memory_order_relaxed); }

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
  if (AON_LIKELY(put(w, request))) return;
  const uint64_t before = g_unfollowed.fetch_add(1, std::memory_order_relaxed);
  if (before == 0) requests_overflow();
}

void reckon_with_threads() noexcept {
  if (threads_are_concurrent()) return;
  has_concurrent_threads.store(true, std::memory_order_relaxed);
  Table begun_before;
  Guard own(&begun_before.lock);
  {
    Guard guard(&g_tables[0].lock);
    g_tables[0].move_to(&begun_before);
  }
  begun_before.empty([](const Request& request) { put_request(nullptr, request); });
}

void pause_requests(bool is_paused, bool has_splits) noexcept {
  recording_is_paused.store(is_paused, std::memory_order_relaxed);
  bool are_any = is_paused && has_splits;
  for (uint32_t i = 0; is_paused && !are_any && i < kStripes; ++i) {
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
         (newest != 0 && table.find_displaced(handle, newest) != nullptr);
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
  return g_has_seen_c.load(std::memory_order_relaxed) &&
         (threads_are_concurrent() || g_tables[0].has_requests_of_c());
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

bool take_request(const Writer* w, Handle handle, uint64_t newest, Request* out) noexcept {
  if (is_hidden(w, handle)) return false;
  if (is_shared_request(handle)) return take_shared(w, handle, out);
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  const bool is_live = entry != nullptr && entry->number != 0;
  if (newest != 0 && (!is_live || entry->number > newest)) {
    Request* displaced = table.find_displaced(handle, newest);
    if (displaced == nullptr) return false;
    *out = *displaced;
    displaced->number = 0;
    return true;
  }
  if (!is_live) return false;
  *out = *entry;
  if (entry->is_persistent) {
    entry->number = 0;
  } else {
    table.remove(entry);
  }
  return true;
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
  for (uint32_t i = 0; i < kStripes; ++i) {
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
  if (is_hidden(w, handle)) return false;
  if (is_shared_request(handle)) return take_shared(w, handle, out);
  Table& table = table_of(handle);
  Guard guard(&table.lock);
  Request* entry = table.find(handle);
  if (entry == nullptr) return false;
  *out = *entry;
  table.remove(entry);
  return true;
}

}  // namespace aon::mpi
