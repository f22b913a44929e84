/// The calls that started work, by correlation id, and when graphs were captured. A call of the
/// runtime and that of the driver inside of it may have the same id: they are one, the outer.
///
/// Ids are of 32 bits, and each call of CUDA takes one: a job of hours has them several times, and
/// not all calls are kept. So a call is only of work that begins within kLongestNs of it: in that
/// time no process calls CUDA 2^32 times, which were 7 million calls a second where one takes a
/// microsecond and more. Work that waits longer in its stream, as behind a kernel that hangs, has a
/// call that is not known: an idle device did not wait for that call.
/// Thread: one.   Cost: 24 bytes per call, at most kMaxCalls; a sort, then a binary search each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
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
    const auto is_same = [](const Call& outer, const Call& other) {
      return outer.correlation == other.correlation && other.start_ns <= outer.end_ns;
    };
    calls_.erase(std::unique(calls_.begin(), calls_.end(), is_same), calls_.end());
  }
  /// Of a piece of work that begins then, null: not known. Only after sort().
  const Call* take(uint32_t correlation, uint64_t start_ns) {
    const std::pair wanted(correlation, start_ns + kClocksNs);
    const auto behind = std::upper_bound(calls_.begin(), calls_.end(), wanted,
                                         [](const auto& work, const Call& call) {
                                           return work < std::pair(call.correlation, call.start_ns);
                                         });
    if (behind == calls_.begin()) return nullptr;
    Call& call = *std::prev(behind);
    if (call.correlation != correlation || start_ns > call.end_ns + kLongestNs) return nullptr;
    call.has_work = 1;
    return &call;
  }
  std::span<const Call> all() const { return calls_; }
  uint64_t kernel_launch_count() const {
    return static_cast<uint64_t>(std::count_if(
        calls_.begin(), calls_.end(), [](const Call& call) { return call.is_of_kernel != 0; }));
  }

 private:
  static constexpr uint64_t kLongestNs = 600'000'000'000;
  static constexpr uint64_t kClocksNs = 1'000'000'000;  ///< between device and host, at most

  std::vector<Call> calls_;
  Captures captures_;
};

}  // namespace aon::writers::devices
