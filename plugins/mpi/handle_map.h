/// A map from handles to pointers that many threads read without a lock. Open addressing with
/// linear probing; a freed key leaves a mark behind where others follow it, and a new key takes the
/// first mark on its way. The table is made anew when marks and entries fill three quarters of it.
/// Old tables rest, for a reader may still be in one: one that rests is used again after kResting
/// others, hundreds of changes later; a table never shrinks, or none of them would have its size.
///
/// Thread: find() any; put() and take() under the owner's lock.   Signal: no.
/// Cost: find() about 2 ns; put() maps memory when the table grows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "mpi/handles.h"
#include "mpi/memory.h"

namespace aon::mpi {

inline uint64_t hash_handle(Handle handle) {
  const uint64_t x = (handle ^ (handle >> 32)) * 0x9e3779b97f4a7c15ull;
  return x ^ (x >> 29);
}

class SharedHandleMap {
 public:
  /// The value of `key`, or null.
  void* find(Handle key) const {
    const Table* table = table_.load(std::memory_order_acquire);  // pairs with mpi:table
    if (table == nullptr || key <= kRemoved) return nullptr;
    for (uint64_t at = hash_handle(key);; ++at) {
      const Entry& entry = table->entries[at & table->mask];
      const Handle there = entry.key.load(std::memory_order_acquire);  // pairs with mpi:entry
      if (there == key) return entry.value.load(std::memory_order_relaxed);
      if (there == kFree) return nullptr;
    }
  }

  /// Adds or replaces. False: no memory; what is there already is replaced all the same.
  bool put(Handle key, void* value) {
    if (key <= kRemoved) return true;  // what a program has not set: never found
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || (used_ + 1) * 4 > (table->mask + 1) * 3) {
      if (!grow() && find(key) == nullptr) return false;
      table = table_.load(std::memory_order_relaxed);
    }
    Entry* entry = place_for(table, key);
    if (entry->key.load(std::memory_order_relaxed) == kFree) ++used_;
    entry->value.store(value, std::memory_order_relaxed);
    entry->key.store(key, std::memory_order_release);  // pairs with mpi:entry
    return true;
  }

  /// Removes `key` and returns its value, or null.
  void* take(Handle key) {
    Table* table = table_.load(std::memory_order_relaxed);
    if (table == nullptr || key <= kRemoved) return nullptr;
    Entry* entry = at_key(table, key);
    if (entry->key.load(std::memory_order_relaxed) != key) return nullptr;
    void* value = entry->value.load(std::memory_order_relaxed);
    entry->key.store(kRemoved, std::memory_order_relaxed);
    free_marks(table, static_cast<uint64_t>(entry - table->entries));
    return value;
  }

 private:
  static constexpr Handle kFree = 0;
  static constexpr Handle kRemoved = 1;
  static constexpr uint64_t kFirstEntries = 256;
  static constexpr uint32_t kResting = 8;

  struct Entry {
    std::atomic<Handle> key;
    std::atomic<void*> value;
  };
  struct Table {
    uint64_t mask;
    Entry entries[];
  };

  /// The entry of `key`, or the free one where it would be.
  static Entry* at_key(Table* table, Handle key) {
    for (uint64_t at = hash_handle(key);; ++at) {
      Entry& entry = table->entries[at & table->mask];
      const Handle there = entry.key.load(std::memory_order_relaxed);
      if (there == key || there == kFree) return &entry;
    }
  }

  /// The entry of `key`, or else the first mark on its way, or the free one at its end.
  static Entry* place_for(Table* table, Handle key) {
    Entry* mark = nullptr;
    for (uint64_t at = hash_handle(key);; ++at) {
      Entry& entry = table->entries[at & table->mask];
      const Handle there = entry.key.load(std::memory_order_relaxed);
      if (there == key) return &entry;
      if (there == kRemoved && mark == nullptr) mark = &entry;
      if (there == kFree) return mark != nullptr ? mark : &entry;
    }
  }

  /// Marks before a free entry, from `at` down, are free as well: a reader finds nothing behind.
  void free_marks(Table* table, uint64_t at) {
    Entry* entries = table->entries;
    if (entries[(at + 1) & table->mask].key.load(std::memory_order_relaxed) != kFree) return;
    for (; entries[at & table->mask].key.load(std::memory_order_relaxed) == kRemoved; --at) {
      entries[at & table->mask].key.store(kFree, std::memory_order_relaxed);
      --used_;
    }
  }

  bool grow() {
    const Table* old = table_.load(std::memory_order_relaxed);
    const uint64_t old_count = old != nullptr ? old->mask + 1 : 0;
    uint64_t live_count = 0;
    for (uint64_t i = 0; i < old_count; ++i) {
      if (old->entries[i].key.load(std::memory_order_relaxed) > kRemoved) ++live_count;
    }
    uint64_t new_count = std::max(kFirstEntries, old_count);
    while (new_count < live_count * 4) new_count *= 2;
    Table* table = new_table(new_count);
    if (table == nullptr) return false;
    table->mask = new_count - 1;
    for (uint64_t i = 0; i < old_count; ++i) {
      const Handle key = old->entries[i].key.load(std::memory_order_relaxed);
      if (key <= kRemoved) continue;
      Entry* entry = at_key(table, key);
      entry->value.store(old->entries[i].value.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
      entry->key.store(key, std::memory_order_relaxed);
    }
    used_ = live_count;
    table_.store(table, std::memory_order_release);  // pairs with mpi:table
    return true;
  }

  /// An empty table. The one it replaces takes the place of the one that has rested longest.
  Table* new_table(uint64_t entry_count) {
    Table*& place = resting_[next_resting_ % kResting];
    Table* table = place;
    if (table == nullptr || table->mask + 1 != entry_count) {
      table = static_cast<Table*>(map_bytes(sizeof(Table) + entry_count * sizeof(Entry)));
      if (table == nullptr) return nullptr;
    }
    for (uint64_t i = 0; i < entry_count; ++i) {
      table->entries[i].key.store(kFree, std::memory_order_relaxed);
    }
    place = table_.load(std::memory_order_relaxed);
    ++next_resting_;
    return table;
  }

  std::atomic<Table*> table_{nullptr};
  uint64_t used_ = 0;              ///< entries and marks; guarded by the owner's lock
  Table* resting_[kResting] = {};  ///< the same
  uint32_t next_resting_ = 0;      ///< the same
};

}  // namespace aon::mpi
