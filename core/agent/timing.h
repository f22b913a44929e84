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

namespace aon::agent {

/// ns of CLOCK_MONOTONIC.
uint64_t monotonic_ns() noexcept;

/// From `now_ns` of CLOCK_REALTIME to the next multiple of `period_ns`: 1 to period_ns.
constexpr uint64_t until_beat_ns(uint64_t now_ns, uint64_t period_ns) noexcept {
  return period_ns - now_ns % period_ns;
}

/// The same from now on.
uint64_t until_beat_ns(uint64_t period_ns) noexcept;

/// A beat may come so much early and is that beat all the same: ticks of a timer are not exact.
constexpr uint64_t kBeatSlackNs = 20'000'000;

/// The beat that follows the one that was due at `due_ns` (0: none was) and came at `now_ns`, both
/// of one clock. Those that were missed are not made up for.
constexpr uint64_t next_beat_ns(uint64_t due_ns, uint64_t now_ns, uint64_t period_ns) noexcept {
  const bool is_late = due_ns == 0 || now_ns >= due_ns + period_ns;
  return (is_late ? now_ns : due_ns) + period_ns;
}

/// As epoll_wait(), where the kernel can with a timeout that is not in milliseconds; else it is
/// rounded up.
int wait_for_events(int epoll, std::span<epoll_event> events, uint64_t timeout_ns) noexcept;

}  // namespace aon::agent
