/// Times of CLOCK_REALTIME as ticks of the core's clock, by pairs of both: a line through the first
/// pair and the latest one; where the clock was set, through the first one since.
/// Thread: one.
#pragma once

#include <cstdint>
#include <optional>

namespace aon::gpu_counters {

class TimeLine {
 public:
  /// A pair, read as close to each other as can be.
  void add(uint64_t realtime_ns, uint64_t ticks) {
    if (!first_ || is_off(realtime_ns, ticks)) first_ = Pair{realtime_ns, ticks};
    latest_ = Pair{realtime_ns, ticks};
  }

  /// Nothing before there are two pairs kMinSpanNs apart, or when the time is not near the latest.
  std::optional<uint64_t> ticks_of(uint64_t realtime_ns) const {
    if (!first_ || latest_->ns < first_->ns + kMinSpanNs) return std::nullopt;
    const double ticks_per_ns = static_cast<double>(latest_->ticks - first_->ticks) /
                                static_cast<double>(latest_->ns - first_->ns);
    const auto away_ns = static_cast<int64_t>(realtime_ns - latest_->ns);
    if (away_ns > kMaxAwayNs || away_ns < -kMaxAwayNs) return std::nullopt;
    const double ticks = static_cast<double>(away_ns) * ticks_per_ns;
    return latest_->ticks + static_cast<uint64_t>(static_cast<int64_t>(ticks));
  }
  bool is_ready() const { return first_ && latest_->ns >= first_->ns + kMinSpanNs; }

 private:
  /// Somebody has set CLOCK_REALTIME: the line begins anew.
  bool is_off(uint64_t realtime_ns, uint64_t ticks) const {
    if (realtime_ns <= latest_->ns || ticks <= latest_->ticks) return true;
    if (!is_ready()) return false;
    const auto slope = [](const Pair& from, const Pair& to) {
      return static_cast<double>(to.ticks - from.ticks) / static_cast<double>(to.ns - from.ns);
    };
    const double expected_slope = slope(*first_, *latest_);
    const double found_slope = slope(*latest_, {realtime_ns, ticks});
    return found_slope < kMinRatio * expected_slope || found_slope > expected_slope / kMinRatio;
  }

  static constexpr double kMinRatio = 0.9;  ///< of slopes between two pairs, a tick apart
  static constexpr uint64_t kMinSpanNs = 100'000'000;
  static constexpr int64_t kMaxAwayNs = 30'000'000'000;
  struct Pair {
    uint64_t ns;
    uint64_t ticks;
  };
  std::optional<Pair> first_;
  std::optional<Pair> latest_;
};

}  // namespace aon::gpu_counters
