/// Where requests.cpp keeps live requests: tables by handle, and stacks of those whose handles are
/// shared.
///
/// Thread: whoever holds the lock, or while threads take turns anybody.   Signal: no.
/// Cost: 2-5 ns; maps memory only when more requests are live than ever before.
#pragma once

#include <string.h>

#include <atomic>

#include "mpi/handle_map.h"
#include "mpi/lock.h"
#include "mpi/memory.h"
#include "mpi/requests.h"

namespace aon::mpi {

constexpr uint64_t kFirstCapacity = 1024;
constexpr uint32_t kDisplaced = 16;
constexpr uint64_t kMaxEntries = 2 * kMaxLiveRequests;  ///< of all tables; as many of all stacks

inline std::atomic<bool> has_seen_c{false};  ///< a request was known by C's handle

/// How many entries the tables, or the stacks, may still take.
class Allowance {
 public:
  bool take(uint64_t count) {
    const uint64_t before = taken_.fetch_add(count, std::memory_order_relaxed);
    if (before + count <= kMaxEntries) return true;
    give_back(count);
    return false;
  }
  void give_back(uint64_t count) { taken_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> taken_{0};
};
inline Allowance table_entries;
inline Allowance stack_entries;

/// Zeroed memory for `count` requests more than `old_count`, or null.
inline Request* map_requests(Allowance* allowance, uint64_t old_count, uint64_t count) {
  if (!allowance->take(count - old_count)) return nullptr;
  void* memory = map_bytes(count * sizeof(Request));
  if (memory == nullptr) allowance->give_back(count - old_count);  // the next one tries again
  return static_cast<Request*>(memory);
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

  /// Where the new request `handle` is to be written. Null: that takes more than a look, or it does
  /// not fit.
  [[gnu::always_inline]] Request* place_at_once(Handle handle) AON_REQUIRES(lock) {
    if (AON_UNLIKELY(is_full() || handle == 0)) return nullptr;
    Request& entry = slot_of(handle);
    if (AON_UNLIKELY(entry.handle != 0)) return nullptr;
    count_in(handle, 1);
    return &entry;
  }

  /// The same, at any cost. Null: it does not fit.
  Request* place(Handle handle) AON_REQUIRES(lock) {
    if (AON_UNLIKELY(is_full()) && !grow()) return nullptr;
    Request& entry = slot_of(handle);
    if (AON_LIKELY(entry.handle == 0)) {
      count_in(handle, 1);
    } else if (threads_are_concurrent()) {
      displaced_[displaced_count_++ % kDisplaced] = entry;
    }
    return &entry;
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
    if (AON_UNLIKELY(entry_behind(entry).handle != 0)) return close_hole(entry);
    entry->handle = 0;
  }

  /// The same. Returns where the request stands still, all but its handle: followers may take its
  /// place, then in `room`.
  [[gnu::always_inline]] const Request* remove(Request* entry, RequestRoom* room)
      AON_REQUIRES(lock) {
    count_in(entry->handle, ~uint64_t{0});
    if (AON_LIKELY(entry_behind(entry).handle == 0)) {
      entry->handle = 0;
      return entry;
    }
    *room->get() = *entry;
    close_hole(entry);
    return room->get();
  }

  /// For good: each entry goes to `put`, and the table stays as it is, for a call that has just
  /// found that it needs no lock may be in it. Its memory counts no more: the others need room.
  template <class Put>
  void leave(const Put& put) AON_REQUIRES(lock) {
    table_entries.give_back(capacity());
    for (uint64_t i = 0; i < capacity(); ++i) {
      if (entries_[i].handle != 0) put(entries_[i]);
    }
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
    } else if (AON_UNLIKELY(!has_seen_c.load(std::memory_order_relaxed))) {
      has_seen_c.store(true, std::memory_order_relaxed);
    }
  }
  uint64_t capacity() const AON_REQUIRES(lock) { return entries_ != nullptr ? mask_ + 1 : 0; }
  /// Half full is full: probes stay short.
  bool is_full() const AON_REQUIRES(lock) { return (count_ + 1) * 2 > capacity(); }

  const Request& entry_behind(const Request* entry) const AON_REQUIRES(lock) {
    return entries_[static_cast<uint64_t>(entry - entries_ + 1) & mask_];
  }

  /// Followers of the entry that is taken out move up.
  [[gnu::noinline]] void close_hole(const Request* entry) AON_REQUIRES(lock) {
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

  Request& slot_of(Handle handle) AON_REQUIRES(lock) {
    uint64_t at = hash_handle(handle);
    while (entries_[at & mask_].handle != 0 && entries_[at & mask_].handle != handle) ++at;
    return entries_[at & mask_];
  }

  /// False: it may not grow, or there is no memory.
  [[gnu::noinline]] bool grow() AON_REQUIRES(lock) {
    Request* old = entries_;
    const uint64_t old_capacity = capacity();
    const uint64_t new_capacity = old_capacity != 0 ? old_capacity * 2 : kFirstCapacity;
    Request* fresh = map_requests(&table_entries, old_capacity, new_capacity);
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
  /// Where the next request is to be written. Null: the stack has to grow.
  [[gnu::always_inline]] Request* place_at_once() AON_REQUIRES(lock) {
    const uint64_t count = this->count();
    if (AON_UNLIKELY(count == capacity_)) return nullptr;
    set_count(count + 1);
    return &entries_[count];
  }
  /// The same, at any cost. Null: it does not fit.
  Request* place() AON_REQUIRES(lock) {
    if (AON_UNLIKELY(count() == capacity_) && !grow()) return nullptr;
    return place_at_once();
  }
  /// Takes the newest one if it is `handle`. Returns where it stands still, else null.
  [[gnu::always_inline]] const Request* take_newest(Handle handle) AON_REQUIRES(lock) {
    const uint64_t count = this->count();
    if (AON_UNLIKELY(count == 0)) return nullptr;
    Request* newest = &entries_[count - 1];
    if (AON_UNLIKELY(newest->handle != handle)) return nullptr;
    set_count(count - 1);
    return newest;
  }
  /// Whether there may be one; without the lock. Who was told of a request sees it.
  bool has_any() const { return count() != 0; }
  /// Takes the newest of `handle`. Returns where it stands still: in its place, or in `room` when
  /// others lay on it. Null: there is none.
  [[gnu::always_inline]] const Request* take(Handle handle, RequestRoom* room) AON_REQUIRES(lock) {
    const Request* taken = take_newest(handle);
    return AON_LIKELY(taken != nullptr) ? taken : take_buried(handle, room);
  }
  /// As of a table.
  template <class Put>
  void leave(const Put& put) AON_REQUIRES(lock) {
    stack_entries.give_back(capacity_);
    visit(put);
  }
  template <class Visit>
  void visit(const Visit& visit) AON_REQUIRES(lock) {
    for (uint64_t i = 0; i < count(); ++i) visit(entries_[i]);
  }

  SpinLock lock;

 private:
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  void set_count(uint64_t count) AON_REQUIRES(lock) {
    count_.store(count, std::memory_order_relaxed);
  }

  [[gnu::noinline]] const Request* take_buried(Handle handle, RequestRoom* room)
      AON_REQUIRES(lock) {
    const uint64_t left = count() - 1;
    uint64_t at = left + 1;
    while (at != 0 && entries_[at - 1].handle != handle) --at;
    if (at == 0) return nullptr;
    *room->get() = entries_[at - 1];
    set_count(left);
    memmove(&entries_[at - 1], &entries_[at], (left - at + 1) * sizeof(Request));
    return room->get();
  }

  [[gnu::noinline]] bool grow() AON_REQUIRES(lock) {
    const uint64_t new_capacity = capacity_ != 0 ? capacity_ * 2 : kFirstCapacity;
    Request* fresh = map_requests(&stack_entries, capacity_, new_capacity);
    if (fresh == nullptr) return false;
    if (entries_ != nullptr) {
      memcpy(fresh, entries_, count() * sizeof(Request));
      munmap(entries_, capacity_ * sizeof(Request));
    }
    entries_ = fresh;
    capacity_ = new_capacity;
    return true;
  }

  Request* entries_ AON_GUARDED_BY(lock) = nullptr;
  std::atomic<uint64_t> count_{0};  ///< written under the lock
  uint64_t capacity_ AON_GUARDED_BY(lock) = 0;
};

}  // namespace aon::mpi
