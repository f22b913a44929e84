/// CUPTI's time (ns of CLOCK_REALTIME, as cuptiGetTimestamp() tells) -> ticks of the process's
/// clock, by pairs of the two that were read together. Between two pairs time is a line; before the
/// first and behind the last it goes on at the rate of the nearest two. A step of CLOCK_REALTIME
/// between two pairs is no rate: the later pair then counts alone.
///
/// Never by CUPTI's timestamp callback: versions 12.6 to 13.0 lose times with it.
/// Thread: one.   Cost: about 5 ns per time; the last kPairs pairs.
#pragma once

#include <cstdint>

namespace aon::cupti {

struct ClockPair {
  uint64_t ticks;
  uint64_t ns;
};

class DeviceClock {
 public:
  static constexpr uint32_t kPairs = 256;

  /// Pairs come in order of their ticks.
  void add(const ClockPair& pair);
  uint64_t to_ticks(uint64_t ns) const;
  uint32_t pair_count() const { return count_; }

 private:
  const ClockPair& at(uint32_t index) const { return pairs_[(first_ + index) % kPairs]; }
  double usual_rate() const { return ticks_per_ns_ == 0 ? 1 : ticks_per_ns_; }
  double rate(const ClockPair& a, const ClockPair& b) const;
  double next_rate(const ClockPair& a, const ClockPair& b);

  ClockPair pairs_[kPairs] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  double ticks_per_ns_ = 0;  ///< of the last stretch without a step; 0: unknown
  double rejected_ = 0;      ///< of the last stretch, when it was taken for one with a step
};

}  // namespace aon::cupti
