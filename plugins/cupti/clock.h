/// CUPTI's time (ns of CLOCK_REALTIME, as cuptiGetTimestamp() tells) -> ticks of the process's
/// clock, by pairs of the two that were read together. Between two pairs time is a line; before the
/// first and behind the last it goes on at the rate of the nearest two. A step of CLOCK_REALTIME
/// between two pairs is no rate: each of them then counts alone. Where it was set back, the same
/// time has been twice: the later one counts, unless that is still to come.
///
/// Never by CUPTI's timestamp callback: versions 12.6 to 13.0 lose times with it.
/// Thread: one.   Cost: about 2 ns per time near the one before it; the last kPairs pairs.
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
  [[gnu::always_inline]] uint64_t to_ticks(uint64_t ns) {
    // One comparison for all that may be unusual.
    if (__builtin_expect(ns - line_.near_from_ns < line_.near_count, 1)) return line_.near_at(ns);
    return far_to_ticks(ns);
  }
  uint32_t pair_count() const { return count_; }
  /// False for a time more than a day from all that the pairs tell of: no work was then, the record
  /// is damaged. Clocks are set by less while a program runs.
  [[gnu::always_inline]] bool is_plausible(uint64_t ns) const {
    return ns - plausible_from_ns_ < plausible_count_;
  }

 private:
  static constexpr uint64_t kFarNs = 24ull * 3600 * 1'000'000'000;
  static constexpr uint64_t kNearNs = uint64_t{1} << 50;  ///< 13 days
  /// Work is read when it is over, so it is hardly later than the last pair.
  static constexpr uint64_t kAheadNs = 600'000'000;
  static constexpr int kFixedBits = 40;
  static constexpr int64_t kHalf = int64_t{1} << (kFixedBits - 1);

  /// Times between the two lie on a line through `pair`; none when from_ns > to_ns.
  struct Line {
    uint64_t from_ns = 1;
    uint64_t to_ns = 0;
    ClockPair pair = {};
    double ticks_per_ns = 1;
    int64_t fixed_rate = 0;     ///< the same, in units of 2^-kFixedBits
    uint64_t near_from_ns = 0;  ///< from here on
    uint64_t near_count = 0;    ///< so many times are simple: on the line, near, none before zero

    uint64_t near_at(uint64_t ns) const {
      const auto distance_ns = static_cast<int64_t>(ns - pair.ns);
      const __int128 product = static_cast<__int128>(distance_ns) * fixed_rate + kHalf;
      return pair.ticks + static_cast<uint64_t>(product >> kFixedBits);
    }
    uint64_t far_at(uint64_t ns) const;
  };
  void set_line(const Line& line);

  [[gnu::noinline]] uint64_t far_to_ticks(uint64_t ns);
  void find_line(uint64_t ns);
  bool find_line_among_steps(uint64_t ns);
  bool was_set_back() const;
  void note_plausible(uint64_t ns);
  const ClockPair& at(uint32_t index) const { return pairs_[(first_ + index) % kPairs]; }
  double usual_rate() const { return ticks_per_ns_ == 0 ? 1 : ticks_per_ns_; }
  double rate(const ClockPair& a, const ClockPair& b) const;
  double next_rate(const ClockPair& a, const ClockPair& b);

  ClockPair pairs_[kPairs] = {};
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  Line line_;                  ///< of the time that was asked for last
  double ticks_per_ns_ = 0;    ///< of the last stretch without a step; 0: unknown
  double rejected_ = 0;        ///< of the last stretch, when it was taken for one with a step
  bool was_set_back_ = false;  ///< between two of the pairs
  uint64_t plausible_from_ns_ = 0;
  uint64_t plausible_count_ = 0;  ///< so many times are plausible; 0: no pair yet
};

}  // namespace aon::cupti
