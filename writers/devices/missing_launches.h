/// Launches of kernels of which there is no record of the kernel, by the time of their call. Into a
/// capture that is no loss: while a process captures none is missing, and where it launches graphs
/// without a recorded capture (older spools; graphs that are made node by node) nothing is known.
/// Thread: one.   Cost: a sort; 8 bytes per launch, at most kMaxTimes of those with a kernel and of
/// those without: then one stands for several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "writers/devices/blind_times.h"
#include "writers/devices/captures.h"

namespace aon::writers::devices {

/// Any number of times, of which an even share is kept.
class ThinnedTimes {
 public:
  static constexpr size_t kMaxTimes = 1u << 20;

  void add(uint64_t time_ns);
  /// To be called before what follows.
  void sort();
  std::span<const uint64_t> all() const { return times_ns_; }
  uint64_t count(uint64_t begin_ns, uint64_t end_ns) const;
  uint64_t stride() const { return stride_; }

 private:
  std::vector<uint64_t> times_ns_;
  uint64_t stride_ = 1;  ///< each so many-th one is kept
  uint64_t seen_count_ = 0;
};

class MissingLaunches {
 public:
  MissingLaunches() = default;  ///< nothing is known
  MissingLaunches(const Captures& captures, bool has_graphs);

  /// A launch of a kernel.
  void add(uint64_t start_ns, bool has_work);
  /// To be called before what follows.
  void sort();
  bool is_empty() const { return missing_.all().empty(); }
  /// Their times, in order.
  std::span<const uint64_t> all() const { return missing_.all(); }
  uint64_t count(uint64_t begin_ns, uint64_t end_ns) const;
  /// So many that no verdict can be by records.
  bool are_many(uint64_t begin_ns, uint64_t end_ns) const;

 private:
  bool is_known_ = false;
  BlindTimes captures_;
  ThinnedTimes launched_;  ///< and not missing
  ThinnedTimes missing_;
};

}  // namespace aon::writers::devices
