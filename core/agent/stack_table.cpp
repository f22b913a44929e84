#include "core/agent/stack_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ring/stack_ring.h"

namespace aon::agent {
namespace {

static_assert(AON_STACK_FRAMES == ring::kStackFrames);

/// No honest writer counts further; a larger number is of a broken one and would ruin every sum.
constexpr uint64_t kMostLost = uint64_t{1} << 48;

/// The ring of a slot; false when it has none, or what it says cannot be.
bool find_ring(char* base, const RingGeometry& geometry, uint32_t slot, ring::StackRing* ring) {
  const auto& cell = reinterpret_cast<const ThreadSlot*>(base + geometry.slots_offset)[slot];
  for (uint32_t i = 0; i < kStackChunks; ++i) {
    const uint32_t index =
        cell.stack_chunk[i].load(std::memory_order_acquire);  // pairs with ring:stacks
    if (index >= geometry.chunk_count) return false;
    auto* chunk = reinterpret_cast<ChunkHeader*>(base + geometry.chunks_offset +
                                                 uint64_t{index} * kChunkBytes);
    if (chunk->owner.load(std::memory_order_relaxed) != stream_owner(slot, kStackContext))
      return false;
    ring->chunk[i] = reinterpret_cast<std::atomic<uint64_t>*>(chunk + 1);
  }
  return true;
}

}  // namespace

void StackTable::add(uint32_t process, void* base, const RingGeometry& geometry) {
  const MutexLock lock(&m_);
  Entry& entry = entries_[process];
  entry.base = static_cast<char*>(base);
  entry.geometry = geometry;
  // What a ring of an earlier worker lost was told by that one.
  ring::StackRing ring;
  for (uint32_t slot = 0; slot < geometry.slot_count; ++slot) {
    if (find_ring(entry.base, geometry, slot, &ring))
      entry.lost_counts[slot] = ring.lost().load(std::memory_order_relaxed);
  }
}

void StackTable::remove(uint32_t process) {
  const MutexLock lock(&m_);
  const auto found = entries_.find(process);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.is_forgotten) {
    entries_.erase(found);
    return;
  }
  // A process that goes on writing cannot keep us here.
  size_t room = size_t{entry.geometry.slot_count} * ring::kStackRingWords / ring::kStackEntryWords;
  for (aon_noted_stack stack; room > 0 && take_live(&entry, &stack); --room)
    entry.left.push_back(stack);
  entry.base = nullptr;
}

void StackTable::forget(uint32_t process) {
  const MutexLock lock(&m_);
  const auto found = entries_.find(process);
  if (found == entries_.end()) return;
  found->second.is_forgotten = true;
  if (found->second.base == nullptr) entries_.erase(found);
}

bool StackTable::take_slot(Entry* entry, uint32_t slot, aon_noted_stack* stack) {
  ring::StackRing ring;
  if (!find_ring(entry->base, entry->geometry, slot, &ring)) return false;
  const uint64_t lost = ring.lost().load(std::memory_order_relaxed);
  uint64_t& told = entry->lost_counts[slot];
  *stack = {};
  if (lost > told && lost < kMostLost) stack->lost_count = lost - std::exchange(told, lost);
  ring::NotedStack noted;
  if (!take_stack(ring, &noted)) return stack->lost_count != 0;
  stack->raw_ns = noted.raw_ns;
  stack->tid = static_cast<int32_t>(noted.tid);
  stack->frame_count = noted.frame_count;
  std::memcpy(stack->frames, noted.frames, noted.frame_count * sizeof(uint64_t));
  return true;
}

bool StackTable::take_live(Entry* entry, aon_noted_stack* stack) {
  const auto* header = reinterpret_cast<const RingHeader*>(entry->base);
  const uint32_t claimed =
      header->slots_used.load(std::memory_order_acquire);  // pairs with ring:slots
  const uint32_t used = std::min(claimed, entry->geometry.slot_count);
  for (uint32_t i = 0; i < used; ++i) {
    const uint32_t slot = (entry->next_slot + i) % used;
    if (!take_slot(entry, slot, stack)) continue;
    entry->next_slot = slot;
    return true;
  }
  return false;
}

bool StackTable::take(uint32_t process, aon_noted_stack* stack) {
  const MutexLock lock(&m_);
  const auto found = entries_.find(process);
  if (found == entries_.end()) return false;
  Entry& entry = found->second;
  if (entry.base != nullptr) return take_live(&entry, stack);
  if (entry.left.empty()) return false;
  *stack = entry.left.front();
  entry.left.pop_front();
  return true;
}

void StackTable::set_rate(uint32_t process, uint32_t rate_hz) {
  const MutexLock lock(&m_);
  const auto found = entries_.find(process);
  if (found == entries_.end() || found->second.base == nullptr) return;
  auto* header = reinterpret_cast<RingHeader*>(found->second.base);
  header->stack_rate.store(rate_hz + 1, std::memory_order_relaxed);
}

}  // namespace aon::agent
