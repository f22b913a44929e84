/// Reading the clock of a process and pairing it with the system's. Ticks are TSC where it is
/// constant, else ns of CLOCK_MONOTONIC_RAW; one choice holds for a node. The agent takes one
/// snapshot a second and writes it as a kClock definition; clock_map.h fits them.
/// Thread: any.   Signal: safe, except probe_tsc.   Cost: now_ticks() one TSC read; a snapshot of
/// n brackets about n * 45 ns.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <string>

namespace aon::clock {

enum class TickSource : uint32_t { kMonotonicRaw = 0, kTsc = 1 };  ///< values of clock_is_tsc

/// Whether rdtsc may serve as the clock here. `reason` says why not, or is empty.
struct TscSuitability {
  bool is_suitable;
  std::string reason;
};

/// Needs constant_tsc and nonstop_tsc in /proc/cpuinfo and `tsc` as the kernel's clock source, its
/// verdict on counters that are synchronised and stable. A guest's kvm-clock is derived from
/// the TSC and is accepted when the kernel has not marked the TSC unstable.
TscSuitability probe_tsc();

/// The same on given texts: flags line of /proc/cpuinfo, current_clocksource and
/// available_clocksource.
TscSuitability judge_tsc(const std::string& cpu_flags, const std::string& current_clocksource,
                         const std::string& available_clocksources);

/// kTsc where probe_tsc() allows it.
TickSource choose_tick_source();

uint64_t now_ticks(TickSource source) noexcept;

/// Pairs the three clocks; the narrowest of `bracket_count` brackets of two tick reads counts.
ClockDefinition take_snapshot(TickSource source, int bracket_count = 50) noexcept;

}  // namespace aon::clock
