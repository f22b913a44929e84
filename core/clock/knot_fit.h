/// The windows of one node with those that stand before it -> its knots, and how far they may be
/// off. The rules are in cluster_clock.h.
/// Thread: one.   Cost: O(n log n) of the windows.
#pragma once

#include <cstdint>
#include <vector>

#include "core/clock/clock_map.h"

namespace aon::clock {

/// What one window says: at `own_ns` the reference was at `reference_ns`.
struct Mark {
  int64_t own_ns;
  int64_t reference_ns;
  double spread_ns;  ///< bound of its error, without asymmetry
  double worst_ns;   ///< the same, assuming nothing
};

class KnotFit {
 public:
  /// `marks` in any order, at least one. The bounds hold from `first_ns` to `last_ns`, own time.
  KnotFit(std::vector<Mark> marks, uint64_t first_ns, uint64_t last_ns);

  const std::vector<ClockKnot>& knots() const { return knots_; }
  double error_ns() const { return error_ns_; }
  double worst_ns() const { return worst_ns_; }
  uint32_t step_count() const { return step_count_; }

 private:
  /// A mark relative to the first one.
  struct Point {
    double at_ns;
    double offset_ns;
    double spread_ns;
    double worst_ns;
  };
  /// The line beyond the first or last point.
  struct End {
    double slope;
    double doubt;
  };

  void select();
  void trim_ends();
  void drop_strays();
  void count_steps();
  void find_bends();
  void check_left_out();
  void bound_intervals();
  void add_knots(uint64_t first_ns, uint64_t last_ns);
  void extend(const End& end, const Point& point, double distance_ns);
  End line_beyond(size_t end, bool is_first) const;
  double off_ns(const End& end, double distance_ns) const;
  double slope(size_t a, size_t b) const;
  bool is_plausible(size_t a, size_t b) const;
  double on_line(const Point& a, const Point& b, double at_ns) const;
  void put(double at_ns, double offset_ns);

  int64_t origin_ns_;
  int64_t base_ns_;
  std::vector<Point> points_;
  std::vector<Point> left_out_;
  std::vector<double> bends_;     ///< by point
  std::vector<bool> is_step_;     ///< of the interval before the point
  std::vector<double> extra_ns_;  ///< of the interval before the point
  double drift_ = 0;
  double wander_ = 0;  ///< of the drift, per ns
  double error_ns_ = 0;
  double worst_ns_ = 0;
  uint32_t step_count_ = 0;
  std::vector<ClockKnot> knots_;
};

}  // namespace aon::clock
