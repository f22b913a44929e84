/// CLOCK_MONOTONIC_RAW -> ticks of the records, by pairs of both clocks, one per tick of the
/// provider. Between two pairs a straight line: the clocks drift apart by far less than 1 ns then.
/// Thread: the provider's.   Cost: a division.
#pragma once

#include <cstdint>

namespace aon::perf {

class TimeMap {
 public:
  void add(uint64_t raw_ns, uint64_t ticks) {
    // Two readings close to each other give no slope.
    if (from_.ticks == 0) from_ = {raw_ns, ticks};
    if (to_.raw_ns - from_.raw_ns >= kLeastBaseNs) from_ = to_;
    to_ = {raw_ns, ticks};
  }
  /// `raw_ns` is not after the last pair.
  uint64_t to_ticks(uint64_t raw_ns) const {
    if (to_.raw_ns <= from_.raw_ns || raw_ns >= to_.raw_ns) return to_.ticks;
    const double rate = static_cast<double>(to_.ticks - from_.ticks) /
                        static_cast<double>(to_.raw_ns - from_.raw_ns);
    const double before = static_cast<double>(to_.raw_ns - raw_ns) * rate;
    return to_.ticks - static_cast<uint64_t>(before);
  }
  uint64_t last_raw_ns() const { return to_.raw_ns; }

 private:
  static constexpr uint64_t kLeastBaseNs = 50'000'000;
  struct Pair {
    uint64_t raw_ns = 0;
    uint64_t ticks = 0;
  };
  Pair from_;
  Pair to_;
};

}  // namespace aon::perf
