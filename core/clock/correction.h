/// A piecewise linear correction of a clock, to be asked in any order.
/// Thread: any.   Cost: a binary search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock/clock_map.h"

namespace aon::clock {

/// `knots` (as ClockMap::corrected() takes them) outlive it.
class Correction {
 public:
  explicit Correction(std::span<const ClockKnot> knots) : knots_(knots) {}

  /// The corrected time, which is negative where the reference was not there yet.
  __int128 at(uint64_t own_ns) const {
    if (knots_.empty()) return own_ns;
    if (knots_.size() == 1) return __int128{own_ns} - knots_[0].own_ns + knots_[0].reference_ns;
    const auto next =
        std::upper_bound(knots_.begin() + 1, knots_.end() - 1, own_ns,
                         [](uint64_t ns, const ClockKnot& knot) { return ns < knot.own_ns; });
    const ClockKnot& a = *(next - 1);
    const ClockKnot& b = *next;
    const __int128 run = __int128{b.own_ns} - a.own_ns;
    const __int128 rise = __int128{b.reference_ns} - a.reference_ns;
    const __int128 distance = __int128{own_ns} - a.own_ns;
    // Floors in both directions, so that the whole never decreases.
    const __int128 product = distance * (rise - run);
    const __int128 quotient = product / run - (product % run < 0 ? 1 : 0);
    return __int128{a.reference_ns} + distance + quotient;
  }

 private:
  std::span<const ClockKnot> knots_;
};

}  // namespace aon::clock
