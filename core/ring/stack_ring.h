/// The stacks that a timer's signal handler notes for the agent (core/runtime/timer_samples.h): a
/// ring of words over the stack chunks of one thread slot. Both sides use this header.
///
///     chunk 0:    | head | tail | lost | 0 | data ...        chunk 1, 2:   | data ...
///     one stack:  | tid << 32 | frame count | CLOCK_MONOTONIC_RAW ns | frames, innermost first |
///
///     handler (thread of the slot)                           agent
///     words, head.store(release) --------------------------> head.load(acquire)    ring:stack
///     tail.load(acquire) <---------------------------------- tail.store(release)   ring:untake
///
/// `head` and `tail` count words and never fall. The agent trusts neither: what does not fit
/// together empties the ring.
/// Signal: put_stack() safe.   Cost: about 50 ns.   Depends on nothing but the ring.
#pragma once

#include <aon/ring.h>

#include <atomic>
#include <cstdint>

namespace aon::ring {

constexpr uint32_t kChunkWords = kChunkCapacityBytes / sizeof(uint64_t);
constexpr uint32_t kStackHeaderWords = 4;
constexpr uint32_t kStackRingWords = kStackChunks * kChunkWords - kStackHeaderWords;
constexpr uint32_t kStackFrames = 62;  ///< of one stack, at most; outer ones are cut
constexpr uint32_t kStackEntryWords = 2;

struct StackRing {
  std::atomic<uint64_t>* chunk[kStackChunks] = {};

  std::atomic<uint64_t>& head() const { return chunk[0][0]; }
  std::atomic<uint64_t>& tail() const { return chunk[0][1]; }
  std::atomic<uint64_t>& lost() const { return chunk[0][2]; }
  std::atomic<uint64_t>& word(uint64_t position) const {
    const uint64_t at = position % kStackRingWords + kStackHeaderWords;
    return chunk[at / kChunkWords][at % kChunkWords];
  }
};

struct NotedStack {
  uint64_t raw_ns;
  uint32_t tid;
  uint32_t frame_count;
  uint64_t frames[kStackFrames];
};

/// False: no room, counted.   Thread: the slot's.   Signal: safe.
inline bool put_stack(const StackRing& ring, const NotedStack& stack) {
  const uint64_t head = ring.head().load(std::memory_order_relaxed);
  const uint64_t tail = ring.tail().load(std::memory_order_acquire);  // pairs with ring:untake
  const uint64_t words = uint64_t{stack.frame_count} + kStackEntryWords;
  if (head - tail > kStackRingWords - words) {
    ring.lost().fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  ring.word(head).store(uint64_t{stack.tid} << 32 | stack.frame_count, std::memory_order_relaxed);
  ring.word(head + 1).store(stack.raw_ns, std::memory_order_relaxed);
  for (uint32_t i = 0; i < stack.frame_count; ++i)
    ring.word(head + kStackEntryWords + i).store(stack.frames[i], std::memory_order_relaxed);
  ring.head().store(head + words, std::memory_order_release);  // pairs with ring:stack
  return true;
}

/// The oldest stack; false when there is none.   Thread: one reader.
inline bool take_stack(const StackRing& ring, NotedStack* stack) {
  const uint64_t head = ring.head().load(std::memory_order_acquire);  // pairs with ring:stack
  const uint64_t tail = ring.tail().load(std::memory_order_relaxed);
  const uint64_t filled = head - tail;
  if (filled == 0) return false;
  const uint64_t first = ring.word(tail).load(std::memory_order_relaxed);
  const uint64_t count = first & 0xffffffffu;
  if (filled > kStackRingWords || count > kStackFrames || count + kStackEntryWords > filled) {
    ring.tail().store(head, std::memory_order_release);  // pairs with ring:untake
    return false;
  }
  stack->tid = static_cast<uint32_t>(first >> 32);
  stack->frame_count = static_cast<uint32_t>(count);
  stack->raw_ns = ring.word(tail + 1).load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < stack->frame_count; ++i)
    stack->frames[i] = ring.word(tail + kStackEntryWords + i).load(std::memory_order_relaxed);
  ring.tail().store(tail + count + kStackEntryWords,
                    std::memory_order_release);  // pairs with ring:untake
  return true;
}

}  // namespace aon::ring
