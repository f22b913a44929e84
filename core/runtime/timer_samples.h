/// Call stacks by a timer of each thread's CPU time, where perf is forbidden and the user asked for
/// it (--sampling-fallback timer; docs/decisions/009-timer-samples.md).
///
///     aon_attach ----- open_timer: bounds of the stack, chunks of the ring, timer_create
///     SIGURG --------> frame pointers within the bounds -> stack ring (core/ring/stack_ring.h)
///     agent ---------> RingHeader::stack_rate, which the handler follows
///     thread's end --- close_timer
///
/// SIGURG, because its default is to be ignored: one that comes late, in another image or after the
/// program took its handler away, does nothing. It is never taken from a program that handles or
/// ignores it. Only threads that record anything have a timer; only those are seen.
/// Thread: any, each for itself.   Owner: the process; wiped in a fork()ed child, which inherits
/// no timers.
/// Cost: nothing unless AON_SAMPLING_TIMER is set; then a read of /proc/self/maps per thread and
/// 2 to 5 us a sample.
#pragma once

#include <stdint.h>

#include <atomic>

#include "core/ring/stack_ring.h"

namespace aon {
struct Writer;
}

namespace aon::runtime {

struct Process;

enum class TimerState : uint32_t { kUnknown = 0, kOpening, kOn, kOff };

/// Of the process; all zero at first.
struct TimerPlan {
  std::atomic<uint32_t> state;           ///< TimerState
  std::atomic<uint32_t> late_threads;    ///< came while it was kOpening, and have none
  std::atomic<uint32_t> told_threads;    ///< 1: the ledger knows of threads without a timer
  std::atomic<uint32_t> stacked_chunks;  ///< taken from the pool so far
  uint32_t rate_hz;
};

/// Addresses [low, high) that can be read as long as the thread lives; none: low == high.
struct StackBounds {
  uintptr_t low;
  uintptr_t high;
};

/// Of one thread slot; owner thread and its handler only.
struct ThreadTimer {
  int id;
  bool is_on;
  bool is_resting;  ///< notes nothing, only looks at the rate now and then
  uint32_t tid;
  uint32_t rate_hz;  ///< as the timer is set
  StackBounds bounds;
  ring::StackRing ring;
};

/// Follows frame pointers from `frame` up, innermost first, behind the one entry that is there:
/// every word is read within the bounds, above the stack pointer. Returns the count with that one.
/// Signal: safe.   Cost: about 2 ns a frame.
uint32_t follow_frames(uintptr_t stack, uintptr_t frame, const StackBounds& bounds,
                       uint64_t* frames, uint32_t count, uint32_t capacity);

/// Bounds of the stack that `here` lies on, by the text of /proc/self/maps; `top` is where the
/// thread's own stack ends. None when `here` is on another stack.
StackBounds find_stack(const char* maps, uintptr_t here, uintptr_t top);

/// Whether CPU timers of this kernel ("5.10.0-...") send their signals at the return to user mode
/// alone: then no system call ends with EINTR for them.
bool is_timer_harmless(const char* release);

void open_timer(Process& p, Writer* w);
void close_timer(Process& p, Writer* w);

}  // namespace aon::runtime
