/// From the GPU's timer to ticks of the process: an event can only come after what it tells of, so
/// the lowest difference between both clocks seen in about a second is the best estimate of their
/// offset; it is late by the delay of the fastest event, some us. While there are no events both
/// clocks go apart, and the next one may be that much later.
/// Thread: the one that tells of a communicator's channels.   Cost: a few ns.
#pragma once

#include <time.h>

#include <algorithm>

#include "nccl/state.h"

namespace aon::nccl {

constexpr uint64_t kGpuWindowNs = 1'000'000'000;
constexpr double kMostDrift = 1e-4;  ///< twice that of two bad clocks

constexpr uint64_t kLeastRateNs = 2'000'000;  ///< for a rate that is right to 1e-4

inline uint64_t raw_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// Both clocks at one moment: the closest of some pairs.
inline void read_pair(const Writer* w, uint64_t* now_ticks, uint64_t* now_raw_ns) {
  uint64_t best = UINT64_MAX;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const uint64_t before = ticks(w);
    const uint64_t raw = raw_ns();
    const uint64_t width = ticks(w) - before;
    if (width >= best) continue;
    best = width;
    *now_ticks = before + width / 2;
    *now_raw_ns = raw;
  }
}

inline uint64_t gpu_ticks(const GpuClock& clock, uint64_t gpu_ns) {
  const double distance_ns = static_cast<double>(static_cast<int64_t>(gpu_ns - clock.base_ns));
  return static_cast<uint64_t>(clock.base_ticks +
                               static_cast<int64_t>(distance_ns * clock.ticks_per_ns));
}

/// Ticks per ns since the state began; 1 where ticks are ns.
inline double measure_rate(const State& state, const Writer* w) {
  uint64_t now = 0;
  uint64_t raw = 0;
  read_pair(w, &now, &raw);
  if (w->clock_is_tsc == 0 || raw <= state.base_raw_ns) return 1.0;
  return static_cast<double>(now - state.base_ticks) / static_cast<double>(raw - state.base_raw_ns);
}

inline void publish_clock(SharedGpuClock& shared, const GpuClock& clock) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint32_t sequence = shared.sequence.load(kRelaxed);
  shared.sequence.store(sequence + 1, kRelaxed);
  shared.base_ns.store(clock.base_ns, std::memory_order_release);        // pairs with nccl:clock
  shared.base_ticks.store(clock.base_ticks, std::memory_order_release);  // pairs with nccl:clock
  shared.ticks_per_ns.store(clock.ticks_per_ns,
                            std::memory_order_release);            // pairs with nccl:clock
  shared.sequence.store(sequence + 2, std::memory_order_release);  // pairs with nccl:clock
}

/// The clock as last published; when a writer is in the way all the time, its last but one.
inline GpuClock read_clock(const SharedGpuClock& shared) {
  GpuClock clock = {};
  for (int attempt = 0; attempt < 8; ++attempt) {
    const uint32_t before =
        shared.sequence.load(std::memory_order_acquire);                   // pairs with nccl:clock
    clock.base_ns = shared.base_ns.load(std::memory_order_acquire);        // pairs with nccl:clock
    clock.base_ticks = shared.base_ticks.load(std::memory_order_acquire);  // pairs with nccl:clock
    clock.ticks_per_ns =
        shared.ticks_per_ns.load(std::memory_order_acquire);  // pairs with nccl:clock
    const uint32_t after = shared.sequence.load(std::memory_order_relaxed);
    if (before == after && before % 2 == 0) break;
  }
  return clock;
}

/// Takes a look at both clocks: an event at `now` that told of `gpu_ns`.
inline void adjust(Communicator& communicator, const State& state, const Writer* w,
                   uint64_t gpu_ns) {
  const uint64_t now = ticks(w);
  GpuClock& clock = communicator.gpu;
  int64_t& lowest = communicator.gpu_lowest;
  if (clock.base_ns == 0) {
    clock = {gpu_ns, static_cast<int64_t>(now), measure_rate(state, w)};
    communicator.gpu_window_ticks = now;
    lowest = INT64_MAX;
    publish_clock(communicator.gpu_shared, clock);
    return;
  }
  const int64_t late = static_cast<int64_t>(now - gpu_ticks(clock, gpu_ns));
  if (late < lowest) lowest = late;
  if (late < 0) {
    clock.base_ticks += late;
    lowest = 0;
    publish_clock(communicator.gpu_shared, clock);
  }
  const double pause_ticks = static_cast<double>(now - communicator.gpu_window_ticks) -
                             static_cast<double>(kGpuWindowNs) * clock.ticks_per_ns;
  if (pause_ticks < 0) return;
  // From here on: the lowest of the window that is over, and the rate as it is known now.
  const int64_t least =
      std::min(std::max<int64_t>(late, 0), lowest + static_cast<int64_t>(pause_ticks * kMostDrift));
  const int64_t base = static_cast<int64_t>(gpu_ticks(clock, gpu_ns)) + least;
  clock = {gpu_ns, base, measure_rate(state, w)};
  communicator.gpu_window_ticks = now;
  lowest = INT64_MAX;
  publish_clock(communicator.gpu_shared, clock);
}

}  // namespace aon::nccl
