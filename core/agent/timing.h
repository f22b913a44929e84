/// Clocks and beats: when periodic work is due.
///
/// That is at multiples of its period of CLOCK_REALTIME, in the agents of all nodes alike. What
/// interrupts the ranks of a job then does so at one time, on all cores and, as far as their clocks
/// agree, on all nodes: a program whose ranks wait for each other loses the longest of these
/// interruptions, not their sum (Jones et al., "Improving the Scalability of Parallel Jobs by
/// adding Parallel Awareness to the Operating System", SC 2003). Writing files has no part in it: a
/// file system is better off when nodes come one after the other.
/// Thread: any.   Cost: reading a clock.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "core/base/time.h"

namespace aon::agent {

/// From `now_ns` of CLOCK_REALTIME to the next multiple of `period_ns`: 1 to period_ns.
constexpr uint64_t until_beat_ns(uint64_t now_ns, uint64_t period_ns) noexcept {
  return period_ns - now_ns % period_ns;
}

/// Tells of each multiple of its period once: when it is asked for the first time after it, and
/// when the clock was set. Those that nobody asked for are not made up for.
class Beat {
 public:
  /// Due at once.
  explicit constexpr Beat(uint64_t period_ns) noexcept : period_ns_(period_ns) {}
  /// Due at the next multiple after `now_ns` of CLOCK_REALTIME.
  constexpr Beat(uint64_t period_ns, uint64_t now_ns) noexcept
      : period_ns_(period_ns), number_(now_ns / period_ns) {}

  constexpr bool is_due(uint64_t now_ns) noexcept {
    const uint64_t number = now_ns / period_ns_;
    const bool is_new = number != number_;
    number_ = number;
    return is_new;
  }

 private:
  uint64_t period_ns_;
  uint64_t number_ = UINT64_MAX;  ///< of the last one
};

/// As epoll_wait(), where the kernel can with a timeout that is not in milliseconds; else it is
/// rounded up.
int wait_for_events(int epoll, std::span<epoll_event> events, uint64_t timeout_ns) noexcept;

}  // namespace aon::agent
