#include "core/clock/knot_fit.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"
#include "core/clock/cluster_clock.h"

namespace aon::clock {
namespace {

constexpr double kLeastWander = 1e-18;    ///< of the drift, per ns: 1 ppb in a second
constexpr double kUnknownDrift = 100e-6;  ///< two crystals of 50 ppm each
constexpr size_t kMostPairs = 64;
constexpr double kUseful = 0.8;  ///< a window is one if others do not say this much more
constexpr double kNothing = 1e300;
constexpr double kMarginNs = 1e9;  ///< knots beyond the first and last event

}  // namespace

KnotFit::KnotFit(std::vector<Mark> marks, uint64_t first_ns, uint64_t last_ns) {
  std::sort(marks.begin(), marks.end(),
            [](const Mark& a, const Mark& b) { return a.own_ns < b.own_ns; });
  origin_ns_ = marks.front().own_ns;
  base_ns_ = marks.front().reference_ns - marks.front().own_ns;
  for (const Mark& mark : marks) {
    const auto at_ns = static_cast<double>(mark.own_ns - origin_ns_);
    const auto offset_ns = static_cast<double>(mark.reference_ns - mark.own_ns - base_ns_);
    if (!points_.empty() && at_ns <= points_.back().at_ns) continue;
    points_.push_back({at_ns, offset_ns, mark.spread_ns, mark.worst_ns});
  }
  select();
  std::vector<double> slopes;
  for (size_t i = 1; i < points_.size(); ++i) slopes.push_back(slope(i - 1, i));
  drift_ = upper_median(std::move(slopes));
  drop_strays();
  find_bends();
  trim_ends();
  count_steps();
  find_bends();
  check_left_out();
  bound_intervals();
  add_knots(first_ns, last_ns);
}

double KnotFit::slope(size_t a, size_t b) const {
  return (points_[b].offset_ns - points_[a].offset_ns) / (points_[b].at_ns - points_[a].at_ns);
}

double KnotFit::on_line(const Point& a, const Point& b, double at_ns) const {
  return a.offset_ns + (b.offset_ns - a.offset_ns) * ((at_ns - a.at_ns) / (b.at_ns - a.at_ns));
}

/// Whether two crystals can have run so between two points.
bool KnotFit::is_plausible(size_t a, size_t b) const {
  const double doubt =
      (points_[a].spread_ns + points_[b].spread_ns) / (points_[b].at_ns - points_[a].at_ns);
  return std::abs(slope(a, b) - drift_) <= kStepDrift + doubt;
}

/// Leaves out the points between two others that say as much about their time.
void KnotFit::select() {
  const size_t count = points_.size();
  std::vector<double> left(count, kNothing);
  std::vector<double> right(count, kNothing);
  for (size_t i = 1; i < count; ++i) {
    const double way_ns = points_[i].at_ns - points_[i - 1].at_ns;
    left[i] = std::min(left[i - 1], points_[i - 1].spread_ns) + kWander * way_ns;
  }
  for (size_t i = count - 1; i-- > 0;) {
    const double way_ns = points_[i + 1].at_ns - points_[i].at_ns;
    right[i] = std::min(right[i + 1], points_[i + 1].spread_ns) + kWander * way_ns;
  }
  std::vector<Point> kept;
  for (size_t i = 0; i < count; ++i) {
    const bool is_useful = std::max(left[i], right[i]) >= kUseful * points_[i].spread_ns;
    (is_useful ? kept : left_out_).push_back(points_[i]);
  }
  points_ = std::move(kept);
}

/// The first or last points may be told better by the line through those next to them.
void KnotFit::trim_ends() {
  for (const bool is_first : {true, false}) {
    while (points_.size() > 2) {
      const size_t end = is_first ? 0 : points_.size() - 1;
      const size_t next = is_first ? 1 : end - 1;
      const double way_ns = std::abs(points_[next].at_ns - points_[end].at_ns);
      const double told_ns = points_[next].spread_ns + off_ns(line_beyond(next, is_first), way_ns);
      if (told_ns >= kUseful * points_[end].spread_ns) break;
      points_.erase(points_.begin() + static_cast<ptrdiff_t>(end));
    }
  }
}

/// Points that leave the line and come back at once.
void KnotFit::drop_strays() {
  for (size_t i = 1; i + 1 < points_.size();) {
    const bool is_stray =
        !is_plausible(i - 1, i) && !is_plausible(i, i + 1) && is_plausible(i - 1, i + 1);
    if (is_stray) {
      points_.erase(points_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

void KnotFit::count_steps() {
  is_step_.assign(points_.size(), false);
  for (size_t i = 1; i < points_.size(); ++i) {
    is_step_[i] = !is_plausible(i - 1, i);
    if (is_step_[i]) ++step_count_;
  }
}

/// How far the true offset may leave the line between two points.
void KnotFit::find_bends() {
  bends_.assign(points_.size(), 0);
  std::vector<double> wanders;
  for (size_t i = 1; i + 1 < points_.size(); ++i) {
    if (!is_step_.empty() && (is_step_[i] || is_step_[i + 1])) continue;
    const Point& a = points_[i - 1];
    const Point& b = points_[i + 1];
    const double aside_ns = std::abs(points_[i].offset_ns - on_line(a, b, points_[i].at_ns));
    const double told_ns = points_[i].spread_ns + std::max(a.spread_ns, b.spread_ns);
    bends_[i] = aside_ns / 4 + 2 * std::max(0.0, aside_ns - told_ns);
    const double length_ns = b.at_ns - a.at_ns;
    wanders.push_back(8 * aside_ns / (length_ns * length_ns));
  }
  wander_ = std::max(upper_median(std::move(wanders)), kLeastWander);
}

/// Windows without a knot are off the line by no more than their spread.
void KnotFit::check_left_out() {
  extra_ns_.assign(points_.size(), 0);
  for (const Point& point : left_out_) {
    const auto next = std::upper_bound(points_.begin(), points_.end(), point.at_ns,
                                       [](double at, const Point& p) { return at < p.at_ns; });
    if (next == points_.begin() || next == points_.end()) continue;
    const auto i = static_cast<size_t>(next - points_.begin());
    if (is_step_[i]) continue;
    const double aside_ns = std::abs(point.offset_ns - on_line(*(next - 1), *next, point.at_ns));
    // A hard limit, as far as the floor is one.
    extra_ns_[i] = std::max(extra_ns_[i], aside_ns - point.spread_ns);
  }
}

void KnotFit::bound_intervals() {
  for (size_t i = 0; i < points_.size(); ++i) {
    error_ns_ = std::max(error_ns_, points_[i].spread_ns);
    worst_ns_ = std::max(worst_ns_, points_[i].worst_ns);
    if (i == 0 || is_step_[i]) continue;
    const double bend_ns = std::max({bends_[i - 1], bends_[i], extra_ns_[i]});
    const double spread_ns = std::max(points_[i - 1].spread_ns, points_[i].spread_ns);
    const double worst_ns = std::max(points_[i - 1].worst_ns, points_[i].worst_ns);
    error_ns_ = std::max(error_ns_, spread_ns + bend_ns);
    worst_ns_ = std::max(worst_ns_, worst_ns + bend_ns);
  }
}

/// The line that goes on beyond the point `end`: the slope of the pair of points that tells it
/// best.
KnotFit::End KnotFit::line_beyond(size_t end, bool is_first) const {
  const size_t count = is_first ? points_.size() - end : end + 1;
  End best{0, kUnknownDrift};
  for (size_t k = 1; k < std::min(count, kMostPairs); ++k) {
    const size_t other = is_first ? end + k : end - k;
    if (!is_step_.empty() && is_step_[is_first ? other : other + 1]) break;
    const double time_ns = std::abs(points_[other].at_ns - points_[end].at_ns);
    const double doubt =
        (points_[other].spread_ns + points_[end].spread_ns) / time_ns + wander_ * time_ns;
    if (doubt < best.doubt) best = {slope(std::min(end, other), std::max(end, other)), doubt};
  }
  return best;
}

double KnotFit::off_ns(const End& end, double distance_ns) const {
  return (end.doubt + wander_ * distance_ns / 2) * distance_ns;
}

void KnotFit::extend(const End& end, const Point& point, double distance_ns) {
  const double more_ns = off_ns(end, distance_ns);
  error_ns_ = std::max(error_ns_, point.spread_ns + more_ns);
  worst_ns_ = std::max(worst_ns_, point.worst_ns + more_ns);
}

/// Increasing in both times, whatever was measured.
void KnotFit::put(double at_ns, double offset_ns) {
  const int64_t own_ns = origin_ns_ + std::llround(at_ns);
  const int64_t reference_ns = own_ns + base_ns_ + std::llround(offset_ns);
  if (own_ns < 0 || reference_ns < 0) return;
  ClockKnot knot{static_cast<uint64_t>(own_ns), static_cast<uint64_t>(reference_ns)};
  if (!knots_.empty()) {
    const ClockKnot& last = knots_.back();
    if (knot.own_ns <= last.own_ns) return;
    const uint64_t least_ns = (knot.own_ns - last.own_ns) / 1000 + 1;
    knot.reference_ns = std::max(knot.reference_ns, last.reference_ns + least_ns);
  }
  knots_.push_back(knot);
}

void KnotFit::add_knots(uint64_t first_ns, uint64_t last_ns) {
  const Point& front = points_.front();
  const Point& back = points_.back();
  const End start = line_beyond(0, true);
  const End end = line_beyond(points_.size() - 1, false);
  const double start_ns = static_cast<double>(origin_ns_ - static_cast<int64_t>(first_ns));
  const double before_ns = std::max(0.0, start_ns + front.at_ns);
  const double after_ns =
      std::max(0.0, static_cast<double>(static_cast<int64_t>(last_ns) - origin_ns_) - back.at_ns);
  extend(start, front, before_ns);
  extend(end, back, after_ns);
  put(front.at_ns - before_ns - kMarginNs, front.offset_ns - start.slope * (before_ns + kMarginNs));
  for (const Point& point : points_) put(point.at_ns, point.offset_ns);
  put(back.at_ns + after_ns + kMarginNs, back.offset_ns + end.slope * (after_ns + kMarginNs));
}

}  // namespace aon::clock
