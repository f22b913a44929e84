/// Launches of kernels of which there is no record of the kernel, by the time of their call. Into a
/// capture that is no loss: while a process captures none is missing, and where it launches graphs
/// without a recorded capture (older spools; graphs that are made node by node) nothing is known.
/// Thread: one.   Cost: a sort; 16 bytes per launch, where one is missing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "writers/devices/calls.h"

namespace aon::writers::devices {

class MissingLaunches {
 public:
  MissingLaunches() = default;  ///< of none
  /// When all work has been taken from `calls`.
  explicit MissingLaunches(const Calls& calls);

  bool is_empty() const { return missing_ns_.empty(); }
  /// Their times, in order.
  std::span<const uint64_t> all() const { return missing_ns_; }
  uint64_t count(uint64_t begin_ns, uint64_t end_ns) const;
  /// So many that no verdict can be by records.
  bool are_many(uint64_t begin_ns, uint64_t end_ns) const;

 private:
  std::vector<uint64_t> all_ns_;  ///< begins, in order
  std::vector<uint64_t> missing_ns_;
};

}  // namespace aon::writers::devices
