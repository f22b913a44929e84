// ClockMap::corrected: the pieces of the map cut at the knots of a correction.
#include <algorithm>

#include "core/clock/clock_map.h"
#include "core/clock/correction.h"

namespace aon::clock {
namespace {

using Wide = unsigned __int128;

uint64_t bounded(__int128 ns) {
  if (ns < 0) return 0;
  return static_cast<uint64_t>(std::min<__int128>(ns, INT64_MAX));
}

uint64_t own_ns_at(const ClockMap::Piece& piece, uint64_t ticks) {
  return piece.first_ns +
         static_cast<uint64_t>((Wide{ticks - piece.first_ticks} * piece.mult) >> 32);
}

/// The first tick of the piece that is not before `own_ns`.
uint64_t ticks_at(const ClockMap::Piece& piece, uint64_t own_ns) {
  const Wide ticks = ((Wide{own_ns - piece.first_ns} << 32) + piece.mult - 1) / piece.mult;
  return piece.first_ticks + static_cast<uint64_t>(std::min<Wide>(ticks, INT64_MAX));
}

/// Corrects one piece after the other.
class Corrector {
 public:
  Corrector(std::span<const ClockKnot> knots, std::vector<ClockMap::Piece>* out)
      : knots_(knots), correction_(knots), out_(out) {}

  /// `end_ticks`: where the next piece begins; UINT64_MAX: nowhere.
  void add(const ClockMap::Piece& piece, uint64_t end_ticks) {
    uint64_t start_ticks = piece.first_ticks;
    auto knot = std::upper_bound(knots_.begin(), knots_.end(), piece.first_ns,
                                 [](uint64_t ns, const ClockKnot& one) { return ns < one.own_ns; });
    for (; knot != knots_.end() && piece.mult != 0; ++knot) {
      const uint64_t ticks = ticks_at(piece, knot->own_ns);
      if (ticks >= end_ticks) break;
      put(piece, start_ticks, ticks);
      start_ticks = ticks;
    }
    put(piece, start_ticks, end_ticks);
  }

 private:
  void put(const ClockMap::Piece& piece, uint64_t start_ticks, uint64_t end_ticks) {
    if (end_ticks <= start_ticks) return;
    // Of the last piece the rate over its first hour.
    const uint64_t hour_ticks =
        piece.mult == 0 ? 1 : static_cast<uint64_t>((Wide{kHourNs} << 32) / piece.mult) + 1;
    const uint64_t span_ticks =
        std::min(end_ticks - start_ticks, end_ticks == UINT64_MAX ? hour_ticks : UINT64_MAX);
    const uint64_t from_ns = bounded(correction_.at(own_ns_at(piece, start_ticks)));
    const uint64_t to_ns = bounded(correction_.at(own_ns_at(piece, start_ticks + span_ticks)));
    const Wide exact = (Wide{to_ns > from_ns ? to_ns - from_ns : 0} << 32) / span_ticks;
    const auto mult = static_cast<uint64_t>(std::min<Wide>(exact, UINT64_MAX));
    // The first piece is the longest by far: its rounded rate has to meet what follows.
    const auto length_ns = static_cast<uint64_t>((Wide{span_ticks} * mult) >> 32);
    out_->push_back({start_ticks, out_->empty() ? to_ns - length_ns : from_ns, mult});
  }

  static constexpr uint64_t kHourNs = 3'600'000'000'000;
  std::span<const ClockKnot> knots_;
  Correction correction_;
  std::vector<ClockMap::Piece>* out_;
};

}  // namespace

ClockMap ClockMap::corrected(std::span<const ClockKnot> knots) const {
  if (knots.empty()) return *this;
  ClockMap result = *this;
  result.pieces_.clear();
  result.pieces_.reserve(pieces_.size() + knots.size());
  Corrector corrector(knots, &result.pieces_);
  for (size_t i = 0; i < pieces_.size(); ++i) {
    corrector.add(pieces_[i], i + 1 < pieces_.size() ? pieces_[i + 1].first_ticks : UINT64_MAX);
  }
  return result;
}

}  // namespace aon::clock
