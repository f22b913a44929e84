#include "core/clock/clock_map.h"

#include <time.h>

#include <algorithm>

namespace aon::clock {
namespace {

constexpr double kMinNsPerTick = 1e-3;  ///< 1 THz
constexpr double kMaxNsPerTick = 1e3;   ///< 1 MHz
constexpr double kRateTolerance = 1e-3;
constexpr uint64_t kAssumedRateErrorNs = 100'000;  ///< 100 ppm over one second
constexpr int64_t kMeasureNs = 10'000'000;
/// Of a snapshot, 2116 for REALTIME; of the map, twice as much. Sums of two fit into 64 bits.
constexpr uint64_t kMaxSnapshotNs = uint64_t{1} << 62;
constexpr uint64_t kMaxMapNs = uint64_t{1} << 63;

double ns_per_tick(const ClockDefinition& a, const ClockDefinition& b) {
  return static_cast<double>(b.monotonic_raw_ns - a.monotonic_raw_ns) /
         static_cast<double>(b.ticks - a.ticks);
}

uint64_t fixed_point(uint64_t ns, uint64_t ticks) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << 32) / ticks);
}

uint64_t whole_ns(double ns) { return static_cast<uint64_t>(std::min(ns, 1e18)); }

uint64_t scaled(uint64_t ticks, uint64_t mult) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * mult) >> 32);
}

/// `ns` later than `from_ns`, which may be as late as the map goes.
uint64_t later(uint64_t from_ns, uint64_t ns) { return std::min(from_ns + ns, kMaxMapNs); }

/// By time, without those whose clocks run against each other, or far beyond any clock.
std::vector<ClockDefinition> in_order(std::span<const ClockDefinition> snapshots,
                                      uint32_t* dropped_count) {
  std::vector<ClockDefinition> sorted(snapshots.begin(), snapshots.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
  std::vector<ClockDefinition> kept;
  for (const ClockDefinition& snapshot : sorted) {
    bool fits =
        snapshot.monotonic_raw_ns <= kMaxSnapshotNs && snapshot.realtime_ns <= kMaxSnapshotNs;
    if (fits && !kept.empty()) {
      const ClockDefinition& last = kept.back();
      fits = snapshot.ticks > last.ticks && snapshot.monotonic_raw_ns > last.monotonic_raw_ns;
      if (fits) {
        const double rate = ns_per_tick(last, snapshot);
        fits = rate < kMaxNsPerTick;
      }
    }
    if (fits) {
      kept.push_back(snapshot);
    } else {
      ++*dropped_count;
    }
  }
  return kept;
}

/// The rates of the intervals, with the middle one as the nominal rate.
class Rates {
 public:
  explicit Rates(const std::vector<ClockDefinition>& s) {
    std::vector<double> rates;
    for (size_t i = 1; i < s.size(); ++i) rates.push_back(ns_per_tick(s[i - 1], s[i]));
    std::nth_element(rates.begin(), rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2),
                     rates.end());
    nominal_ = std::max(rates[rates.size() / 2], kMinNsPerTick);
    uint64_t ticks = 0;
    uint64_t ns = 0;
    for (size_t i = 1; i < s.size(); ++i) {
      if (!is_regular(s[i - 1], s[i])) continue;
      ticks += s[i].ticks - s[i - 1].ticks;
      ns += s[i].monotonic_raw_ns - s[i - 1].monotonic_raw_ns;
    }
    if (ticks != 0) overall_ = static_cast<double>(ns) / static_cast<double>(ticks);
    if (ticks == 0 || overall_ < kMinNsPerTick) overall_ = nominal_;
  }

  /// False when ticks and MONOTONIC_RAW did not run together: one of them stood still.
  bool is_regular(const ClockDefinition& a, const ClockDefinition& b) const {
    const auto raw_ns = static_cast<double>(b.monotonic_raw_ns - a.monotonic_raw_ns);
    const double tick_ns = static_cast<double>(b.ticks - a.ticks) * nominal_;
    const double bracket_ns = static_cast<double>(a.bracket_ticks + b.bracket_ticks) * nominal_;
    const double deviation_ns = raw_ns > tick_ns ? raw_ns - tick_ns : tick_ns - raw_ns;
    return deviation_ns <= kRateTolerance * raw_ns + bracket_ns + 1000;
  }
  double overall() const { return overall_; }

 private:
  double nominal_ = 1;
  double overall_ = 1;
};

double assumed_ns_per_tick(TickSource source, double assumed_hz) {
  if (assumed_hz >= 1e9 / kMaxNsPerTick && assumed_hz <= 1e9 / kMinNsPerTick) {
    return 1e9 / assumed_hz;
  }
  if (source == TickSource::kMonotonicRaw) return 1;
  const ClockDefinition start = take_snapshot(source);
  const timespec pause{0, kMeasureNs};
  nanosleep(&pause, nullptr);
  const ClockDefinition end = take_snapshot(source);
  return end.ticks > start.ticks ? ns_per_tick(start, end) : 1;
}

/// Half the widest bracket and the largest distance of a snapshot from its neighbours' line.
uint64_t error_bound_ns(const std::vector<ClockDefinition>& s, const Rates& rates) {
  double bracket_ns = 0;
  double deviation_ns = 0;
  for (const ClockDefinition& one : s) {
    bracket_ns = std::max(bracket_ns, static_cast<double>(one.bracket_ticks) * rates.overall());
  }
  for (size_t i = 1; i + 1 < s.size(); ++i) {
    if (!rates.is_regular(s[i - 1], s[i]) || !rates.is_regular(s[i], s[i + 1])) continue;
    const double on_line =
        ns_per_tick(s[i - 1], s[i + 1]) * static_cast<double>(s[i].ticks - s[i - 1].ticks);
    const auto measured = static_cast<double>(s[i].monotonic_raw_ns - s[i - 1].monotonic_raw_ns);
    deviation_ns =
        std::max(deviation_ns, on_line > measured ? on_line - measured : measured - on_line);
  }
  return whole_ns(bracket_ns / 2 + deviation_ns) + 1;
}

}  // namespace

ClockMap::ClockMap() : pieces_{{0, 0, uint64_t{1} << 32}} {}

/// The piece before the first snapshot, which it meets.
ClockMap::Piece ClockMap::piece_up_to(const ClockDefinition& first, double rate) {
  const auto mult = static_cast<uint64_t>(rate * 4294967296.0);
  const uint64_t distance_ns = scaled(first.ticks, mult);
  if (distance_ns <= first.realtime_ns) return {0, first.realtime_ns - distance_ns, mult};
  return {0, 0, fixed_point(first.realtime_ns, std::max<uint64_t>(first.ticks, 1))};
}

ClockMap ClockMap::fit(std::span<const ClockDefinition> snapshots, TickSource source,
                       double assumed_hz, Realtime realtime) {
  ClockMap map;
  const std::vector<ClockDefinition> s = in_order(snapshots, &map.dropped_count_);
  if (s.empty()) return map;
  map.pieces_.clear();
  if (s.size() == 1) {
    const double rate = assumed_ns_per_tick(source, assumed_hz);
    map.ticks_per_second_ = 1e9 / rate;
    map.rate_is_assumed_ = source == TickSource::kTsc;
    map.max_error_ns_ = whole_ns(static_cast<double>(s[0].bracket_ticks) * rate / 2) +
                        (map.rate_is_assumed_ ? kAssumedRateErrorNs : 1);
    map.pieces_.push_back(piece_up_to(s[0], rate));
    map.pieces_.push_back(
        {s[0].ticks, s[0].realtime_ns, static_cast<uint64_t>(rate * 4294967296.0)});
    return map;
  }
  const Rates rates(s);
  map.rate_is_assumed_ = false;
  map.ticks_per_second_ = 1e9 / rates.overall();
  map.max_error_ns_ = error_bound_ns(s, rates);
  map.pieces_.push_back(piece_up_to(s[0], rates.overall()));
  uint64_t ns = s[0].realtime_ns;
  for (size_t i = 1; i < s.size(); ++i) {
    const ClockDefinition& a = s[i - 1];
    const ClockDefinition& b = s[i];
    const uint64_t raw_ns = b.monotonic_raw_ns - a.monotonic_raw_ns;
    const auto real_ns = static_cast<int64_t>(b.realtime_ns - a.realtime_ns);
    const bool is_suspend = !rates.is_regular(a, b) && real_ns > 0;
    const uint64_t elapsed_ns = is_suspend ? static_cast<uint64_t>(real_ns) : raw_ns;
    map.pieces_.push_back({a.ticks, ns, fixed_point(elapsed_ns, b.ticks - a.ticks)});
    ns = later(ns, elapsed_ns);
    const auto jump_ns =
        is_suspend ? 0 : static_cast<int64_t>(b.realtime_ns - a.realtime_ns - raw_ns);
    const int64_t limit_ns = kStepNs + static_cast<int64_t>(raw_ns / 1000);
    const bool is_step = jump_ns > limit_ns || jump_ns < -limit_ns;
    if (is_step || is_suspend) ++map.step_count_;
    if (is_step && jump_ns > 0 && realtime == Realtime::kFollow)
      ns = later(ns, static_cast<uint64_t>(jump_ns));
  }
  map.pieces_.push_back(
      {s.back().ticks, ns, static_cast<uint64_t>(rates.overall() * 4294967296.0)});
  return map;
}

size_t ClockMap::piece_of(uint64_t ticks) const noexcept {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), ticks,
                                      [](uint64_t t, const Piece& p) { return t < p.first_ticks; });
  return static_cast<size_t>(after - pieces_.begin()) - (after == pieces_.begin() ? 0 : 1);
}

uint64_t ClockMap::to_ns(uint64_t ticks) const noexcept {
  const Piece& piece = pieces_[piece_of(ticks)];
  return piece.first_ns + scaled(ticks - piece.first_ticks, piece.mult);
}

void ClockMap::Cursor::seek(uint64_t ticks) noexcept {
  const size_t index = map_->piece_of(ticks);
  const Piece& piece = map_->pieces_[index];
  const bool is_last = index + 1 == map_->pieces_.size();
  low_ = piece.first_ticks;
  width_ = (is_last ? ~uint64_t{0} : map_->pieces_[index + 1].first_ticks) - low_;
  ns_ = piece.first_ns;
  mult_ = piece.mult;
}

}  // namespace aon::clock
