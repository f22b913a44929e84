/// The event that is sampled: which one this machine has, and how it is asked for.
///
/// Cycles where there is a PMU, else the kernel's CPU clock; user code only, which needs no more
/// than kernel.perf_event_paranoid 2; where perf is forbidden and the user asked for it, timers in
/// the processes (core/runtime/timer_samples.h). Times are those of CLOCK_MONOTONIC_RAW.
/// Thread: any.   Cost: probing opens the event once or twice.
#pragma once

#include <aon/definition.h>
#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <string>

#include "perf/kernel.h"
#include "perf/table.h"

namespace aon::perf {

/// How callers are found.
enum class CallGraph { kNone, kFramePointers, kBranches, kStackCopies };

constexpr uint32_t kStackCopyBytes = 8192;

struct SamplingEvent {
  SamplingSource source = SamplingSource::kCpuClock;
  CallGraph call_graph = CallGraph::kFramePointers;
  uint64_t rate_hz = 0;

  const char* name() const {
    return source == SamplingSource::kCycles  ? "cycles"
           : source == SamplingSource::kTimer ? "timer"
                                              : "cpu-clock";
  }
  /// Bytes of ring that hold a thread's samples between two ticks.
  size_t ring_bytes() const {
    return call_graph == CallGraph::kStackCopies ? size_t{262144} : size_t{32768};
  }
  /// Of an event that is enabled at once.
  perf_event_attr attributes(uint64_t rate_hz) const;
  /// What Kernel::set_period() wants for a rate: the kernel turns the frequency of a clock into a
  /// period when it opens it, so a clock is given a period from the start. An event is never
  /// disabled: it would tell no more of threads and mappings, and shares would be those of other
  /// times alone. At a rate of 0 it samples once in a second of CPU time.
  uint64_t period_or_rate(uint64_t rate_hz) const;
};

struct SamplingProbe {
  std::optional<SamplingEvent> event;
  Obstacle
      obstacle;  ///< without an event: why; with one: what is less than was asked for, or empty
};

/// Opens events on the calling thread until one is taken. The rate is cut to what the kernel
/// allows.
SamplingProbe probe_sampling(const Kernel& kernel, uint64_t rate_hz, const std::string& call_graph,
                             bool may_use_timers = false);

/// CPU time of one sample: the interrupt, the walk over the stack and the record.
/// Measured: 17 to 22 us in a virtual machine, 31 to 35 us of deep paths (docs/decisions/010); on
/// bare metal 1 to 3 us are known.
uint64_t sample_cost_ns(const Kernel& kernel);

}  // namespace aon::perf
