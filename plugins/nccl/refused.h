/// Operations whose records found no room in the ring, summed up by communicator, function and size
/// of their calls: /nccl/histograms has them, too. The sums go as definitions (NcclSumsDefinition),
/// which wait until there is room, when a communicator or the program ends; what is killed before
/// leaves a gap in the numbers of its calls, which the writers count.
///
/// Thread: any; tell_refused() under the mutex of state.h.   Signal: no.
/// Cost: about 20 ns for an operation that is refused, 200 ns where many others have rows, nothing
/// for others; of the process kMaxRefusedSums rows of 408 bytes, touched when they are used.
#pragma once

#include <aon/definition.h>

#include <atomic>
#include <cstdint>

#include "nccl/words.h"

namespace aon::nccl {

struct State;

constexpr uint32_t kMaxRefusedSums = 2048;  ///< a power of two; what finds none near is counted

struct RefusedSums {
  std::atomic<uint64_t> key;  ///< 0: free
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> in_flight_count;  ///< of these a record in flight is in the ring
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> host_ticks;
  std::atomic<uint64_t> timed_count;
  std::atomic<uint64_t> timed_bytes;
  std::atomic<uint64_t> gpu_ns;
  std::atomic<uint64_t> max_ns;
  std::atomic<uint64_t> max_of_inverse;  ///< ~ the shortest
  uint64_t told_count;                   ///< `count` when it was last told
  std::atomic<uint64_t> by_duration[kNcclDurationBuckets];
};
static_assert(sizeof(RefusedSums) == 408);

constexpr uint64_t kNoGpuTime = UINT64_MAX;

struct RefusedOperation {
  uint32_t communicator;
  Function function;
  uint64_t bytes;
  uint64_t host_ticks;
  uint64_t gpu_ns;  ///< or kNoGpuTime
  bool is_told_in_flight;
};
void add_refused(State& state, const RefusedOperation& operation);

/// Of one communicator, or of all (id 0).   Thread: init, finalize, exit.
void tell_refused(State& state, uint32_t communicator);

}  // namespace aon::nccl
