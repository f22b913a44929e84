/// The kernel as the source of counters, and the words for what it refuses.
/// Thread: any.   Cost: the syscalls it names; only when a thread begins or ends.
#pragma once

#include "core/runtime/counters.h"

namespace aon::runtime {

/// The kernel, or what aon_counter_source() of the program gives.
const CounterSource& counter_source();

/// Problems that have no errno of their own.
enum CounterError : int { kNotAllowed = 10000, kGroupTooLarge, kNoLockedMemory };

struct CounterProblem {
  const char* reason;
  const char* remedy;
};

/// Behind the reason, of a process whose threads read no events.
constexpr char kNotAtBorders[] =
    ": events are not read at the borders of calls; the agent counts them ten times a second where "
    "it may";

/// `error_number`: an errno of perf_event_open or mmap, or a CounterError.
CounterProblem explain_counters(int error_number);

}  // namespace aon::runtime
