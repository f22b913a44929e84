/// The calls that started work, by correlation id, and when graphs were captured. A call of the
/// runtime and that of the driver inside of it may have the same id: they are one, the outer.
/// Thread: one.   Cost: 24 bytes per call, at most kMaxCalls; a sort, then a binary search each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "writers/devices/captures.h"
#include "writers/devices/devices.h"

namespace aon::writers::devices {

struct Call {
  uint32_t correlation;
  uint32_t thread : 29;
  uint32_t is_of_graph : 1;   ///< it launched a graph, whose kernels all have its correlation id
  uint32_t is_of_kernel : 1;  ///< it launched a kernel
  uint32_t has_work : 1;      ///< of which there is a record
  uint64_t start_ns;
  uint64_t end_ns;
};

class Calls {
 public:
  void clear() {
    std::exchange(calls_, {});  // gives its memory back
    captures_.clear();
  }
  Captures& captures() { return captures_; }
  const Captures& captures() const { return captures_; }
  /// What is more than the limit is unknown later. Room for all is asked for at once: what is not
  /// used of it is no memory, and nothing is copied to grow.
  void add(const Call& call) {
    if (calls_.capacity() == 0) calls_.reserve(DeviceAnalysis::kMaxCalls);
    if (calls_.size() < DeviceAnalysis::kMaxCalls) calls_.push_back(call);
  }

  void sort() {
    std::sort(calls_.begin(), calls_.end(), [](const Call& a, const Call& b) {
      return a.correlation != b.correlation ? a.correlation < b.correlation
                                            : a.start_ns < b.start_ns;
    });
    const auto is_same = [](const Call& a, const Call& b) {
      return a.correlation == b.correlation;
    };
    calls_.erase(std::unique(calls_.begin(), calls_.end(), is_same), calls_.end());
  }
  /// Of a piece of work, null: not known. Only after sort().
  const Call* take(uint32_t correlation) {
    const auto found = std::lower_bound(
        calls_.begin(), calls_.end(), correlation,
        [](const Call& call, uint32_t wanted) { return call.correlation < wanted; });
    if (found == calls_.end() || found->correlation != correlation) return nullptr;
    found->has_work = 1;
    return &*found;
  }
  std::span<const Call> all() const { return calls_; }
  uint64_t kernel_launch_count() const {
    return static_cast<uint64_t>(std::count_if(
        calls_.begin(), calls_.end(), [](const Call& call) { return call.is_of_kernel != 0; }));
  }

 private:
  std::vector<Call> calls_;
  Captures captures_;
};

}  // namespace aon::writers::devices
