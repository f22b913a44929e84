/// Ticks -> CLOCK_REALTIME nanoseconds, for one node, from its snapshots. Piecewise linear,
/// continuous and never decreasing; only a step of REALTIME jumps, and only forward.
///
///     ticks --linear between snapshots--> MONOTONIC_RAW ns --+ offset of the first--> REALTIME ns
///
/// Between two snapshots the rate is that of the ticks against MONOTONIC_RAW, which nobody slews;
/// before the first and behind the last it is the overall rate. REALTIME gives the offset at the
/// first snapshot, so that NTP's slewing does not bend the trace. What does not run evenly between
/// two snapshots is a step and counted:
/// suspend (ticks and MONOTONIC_RAW differ): REALTIME gives the length of this piece;
/// REALTIME set forward: the map jumps at the second snapshot;
/// REALTIME set back: the offset stays as it was.
/// Thread: immutable after fit(); a Cursor belongs to one thread.   Cost: Cursor::to_ns about 2 ns
/// (one multiplication), ClockMap::to_ns a binary search.
#pragma once

#include <aon/definition.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/clock/snapshot.h"

namespace aon::clock {

constexpr int64_t kStepNs = 10'000'000;  ///< NTP slews at most 0.5 ms in a second

/// A point of the piecewise linear correction of a clock: its time, and the time it should tell.
struct ClockKnot {
  uint64_t own_ns;
  uint64_t reference_ns;
  bool operator==(const ClockKnot&) const = default;
};

/// What a ClockMap makes of REALTIME being set forward.
enum class Realtime : uint8_t {
  kFollow,  ///< it jumps with it
  kStart    ///< REALTIME counts at the first snapshot only
};

class ClockMap {
 public:
  /// The identity map of a clock nobody knows (1 tick = 1 ns, error unknown).
  ClockMap();

  /// Fits `snapshots` (any order; those that contradict the others are dropped and counted). With
  /// one snapshot the rate is `assumed_hz` (0: measured here and now if `source` is this machine's
  /// TSC, else 1 GHz) and rate_is_assumed() is true.
  static ClockMap fit(std::span<const ClockDefinition> snapshots, TickSource source,
                      double assumed_hz = 0, Realtime realtime = Realtime::kFollow);

  /// This map with its times corrected. `knots` increase in both times; between two the correction
  /// is linear, outside of them it goes on as in the first or last piece. Fewer than two: a shift.
  ClockMap corrected(std::span<const ClockKnot> knots) const;

  /// CLOCK_REALTIME ns of `ticks`.
  uint64_t to_ns(uint64_t ticks) const noexcept;

  double ticks_per_second() const noexcept { return ticks_per_second_; }
  /// Bound of the error against the node's MONOTONIC_RAW within the time the snapshots cover: half
  /// the widest bracket plus the largest deviation of a snapshot from its neighbours' line.
  uint64_t max_error_ns() const noexcept { return max_error_ns_; }
  bool rate_is_assumed() const noexcept { return rate_is_assumed_; }
  uint32_t step_count() const noexcept { return step_count_; }        ///< realtime, suspend
  uint32_t dropped_count() const noexcept { return dropped_count_; }  ///< snapshots not used

  /// One linear piece: from `first_ticks` on, ns = first_ns + ((ticks - first_ticks) * mult) >> 32.
  struct Piece {
    uint64_t first_ticks;
    uint64_t first_ns;
    uint64_t mult;
  };
  std::span<const Piece> pieces() const noexcept { return pieces_; }

  /// Conversion with memory of the last piece; for long runs of nearly ordered ticks.
  class Cursor {
   public:
    explicit Cursor(const ClockMap& map) noexcept : map_(&map) { seek(0); }
    uint64_t to_ns(uint64_t ticks) noexcept {
      if (__builtin_expect(ticks - low_ >= width_, 0)) seek(ticks);
      return ns_ +
             static_cast<uint64_t>((static_cast<unsigned __int128>(ticks - low_) * mult_) >> 32);
    }

   private:
    void seek(uint64_t ticks) noexcept;
    const ClockMap* map_;
    uint64_t low_ = 0;
    uint64_t width_ = 0;
    uint64_t ns_ = 0;
    uint64_t mult_ = 0;
  };

 private:
  static Piece piece_up_to(const ClockDefinition& first, double rate);
  size_t piece_of(uint64_t ticks) const noexcept;

  std::vector<Piece> pieces_;  ///< never empty; [0] starts at tick 0
  double ticks_per_second_ = 1e9;
  uint64_t max_error_ns_ = 0;
  bool rate_is_assumed_ = true;
  uint32_t step_count_ = 0;
  uint32_t dropped_count_ = 0;
};

}  // namespace aon::clock
