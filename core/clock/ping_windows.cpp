#include "core/clock/ping_windows.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "core/base/median.h"

namespace aon::clock {
namespace {

constexpr int64_t kWindowGapNs = 200'000'000;
constexpr int64_t kWindowNs = 500'000'000;
constexpr double kUnknownDrift = 100e-6;  ///< two crystals of 50 ppm each
constexpr double kDelayed = 1.5;
constexpr double kGoodWidth = 1.5;  ///< of the median: narrow enough to tell the drift

/// One end of an exchange's interval.
struct Limit {
  double value_ns;
  bool is_high;
  /// Intervals that only touch do meet.
  bool operator<(const Limit& other) const {
    return value_ns != other.value_ns ? value_ns < other.value_ns : is_high < other.is_high;
  }
};

std::vector<std::span<const Exchange>> cut(std::span<const Exchange> all) {
  std::vector<std::span<const Exchange>> parts;
  size_t first = 0;
  for (size_t i = 1; i <= all.size(); ++i) {
    const bool is_end = i == all.size() || all[i].low_at_ns - all[i - 1].low_at_ns > kWindowGapNs ||
                        all[i].low_at_ns - all[first].low_at_ns > kWindowNs;
    if (!is_end) continue;
    parts.push_back(all.subspan(first, i - first));
    first = i;
  }
  return parts;
}

class WindowFit {
 public:
  WindowFit(const PingWindows& result, double drift)
      : origin_ns_(result.origin_ns), base_ns_(result.base_ns), drift_(drift) {}

  /// Nothing where the exchanges contradict each other.
  std::optional<PingWindow> fit(std::span<const Exchange> exchanges);

 private:
  bool intersect(double* low_ns, double* high_ns);
  double density(double low_ns, double high_ns);

  int64_t origin_ns_;
  int64_t base_ns_;
  double drift_;
  std::vector<std::pair<double, double>> intervals_;
  std::vector<Limit> limits_;
  std::vector<double> lows_;
  std::vector<double> highs_;
};

std::optional<PingWindow> WindowFit::fit(std::span<const Exchange> exchanges) {
  const int64_t first_ns = exchanges.front().low_at_ns;
  const int64_t last_ns = exchanges.back().low_at_ns;
  const int64_t middle_ns = first_ns + (last_ns - first_ns) / 2;
  const double at_ns = static_cast<double>(middle_ns - origin_ns_);
  intervals_.clear();
  for (const Exchange& e : exchanges) {
    const double low_ns = static_cast<double>(e.low_ns - base_ns_) -
                          drift_ * static_cast<double>(e.low_at_ns - middle_ns);
    const double high_ns = static_cast<double>(e.high_ns - base_ns_) -
                           drift_ * static_cast<double>(e.high_at_ns - middle_ns);
    if (low_ns <= high_ns) intervals_.emplace_back(low_ns, high_ns);
  }
  double low_ns = 0;
  double high_ns = 0;
  if (intervals_.empty() || !intersect(&low_ns, &high_ns)) return std::nullopt;
  const double density_ns = density(low_ns, high_ns);
  return PingWindow{at_ns,
                    (low_ns + high_ns) / 2,
                    high_ns - low_ns,
                    static_cast<double>(last_ns - first_ns),
                    density_ns,
                    static_cast<uint32_t>(lows_.size())};
}

/// The interval that most of the others contain. False where these are not more than half.
bool WindowFit::intersect(double* low_ns, double* high_ns) {
  *low_ns = intervals_.front().first;
  *high_ns = intervals_.front().second;
  for (const auto& [low, high] : intervals_) {
    *low_ns = std::max(*low_ns, low);
    *high_ns = std::min(*high_ns, high);
  }
  if (*low_ns <= *high_ns) return true;  // all agree
  limits_.clear();
  for (const auto& [low, high] : intervals_) {
    limits_.push_back({low, false});
    limits_.push_back({high, true});
  }
  std::sort(limits_.begin(), limits_.end());
  size_t depth = 0;
  size_t deepest = 0;
  for (size_t i = 0; i < limits_.size(); ++i) {
    depth = limits_[i].is_high ? depth - 1 : depth + 1;
    if (depth <= deepest) continue;
    deepest = depth;
    *low_ns = limits_[i].value_ns;
    *high_ns = limits_[i + 1].value_ns;
  }
  return deepest * 2 > intervals_.size();
}

/// Fills lows_ and highs_ with the intervals that hold the common one.
double WindowFit::density(double low_ns, double high_ns) {
  lows_.clear();
  highs_.clear();
  for (const auto& [low, high] : intervals_) {
    if (low > low_ns || high < high_ns) continue;
    lows_.push_back(-low);
    highs_.push_back(high);
  }
  const double width_ns = high_ns - low_ns;
  if (lows_.size() < 3) return lows_.size() == 2 ? width_ns / 2 : width_ns;
  std::nth_element(lows_.begin(), lows_.begin() + 2, lows_.end());
  std::nth_element(highs_.begin(), highs_.begin() + 2, highs_.end());
  return (lows_[2] + low_ns) + (highs_[2] - high_ns);
}

/// The middle one of the slopes between neighbouring windows that are narrow, and how far it may be
/// off.
void find_drift(PingWindows* result) {
  std::vector<double> widths;
  for (const PingWindow& w : result->windows) widths.push_back(w.width_ns);
  result->drift_doubt = kUnknownDrift;
  if (widths.size() < 2) return;
  const double limit_ns = upper_median(std::move(widths)) * kGoodWidth;
  std::vector<double> slopes;
  std::vector<double> doubts;
  const PingWindow* last = nullptr;
  for (const PingWindow& w : result->windows) {
    if (w.width_ns > limit_ns) continue;
    if (last != nullptr) {
      const double time_ns = w.at_ns - last->at_ns;
      slopes.push_back((w.offset_ns - last->offset_ns) / time_ns);
      doubts.push_back((result->spread_ns(w) + result->spread_ns(*last)) / time_ns);
    }
    last = &w;
  }
  if (slopes.empty()) return;
  result->drift = upper_median(std::move(slopes));
  result->drift_doubt = std::min(upper_median(std::move(doubts)), kUnknownDrift);
}

void fit_all(const std::vector<std::span<const Exchange>>& parts, double drift,
             PingWindows* result) {
  WindowFit one(*result, drift);
  result->windows.clear();
  result->ping_count = 0;
  for (const std::span<const Exchange> part : parts) {
    const std::optional<PingWindow> window = one.fit(part);
    if (!window) continue;
    result->windows.push_back(*window);
    result->ping_count += window->count;
  }
  if (result->windows.empty()) return;
  result->floor_ns = result->windows.front().width_ns;
  for (const PingWindow& w : result->windows) {
    result->floor_ns = std::min(result->floor_ns, w.width_ns);
  }
  result->floor_doubt_ns = result->floor_ns;
  for (const PingWindow& w : result->windows) {
    result->floor_doubt_ns =
        std::min(result->floor_doubt_ns, w.width_ns - result->floor_ns + w.density_ns);
  }
}

}  // namespace

double PingWindows::spread_ns(const PingWindow& window) const {
  const double half_ns = (window.width_ns - floor_ns + floor_doubt_ns) / 2;
  return kReadNs + half_ns + drift_doubt * window.length_ns / 2;
}

PingWindows find_windows(std::vector<Exchange>* exchanges) {
  PingWindows result;
  if (exchanges->empty()) return result;
  const auto is_earlier = [](const Exchange& a, const Exchange& b) {
    return a.low_at_ns < b.low_at_ns;
  };
  if (!std::is_sorted(exchanges->begin(), exchanges->end(), is_earlier)) {
    std::sort(exchanges->begin(), exchanges->end(), is_earlier);
  }
  const Exchange& middle = (*exchanges)[exchanges->size() / 2];
  result.origin_ns = exchanges->front().low_at_ns;
  result.base_ns = middle.low_ns + (middle.high_ns - middle.low_ns) / 2;
  const std::vector<std::span<const Exchange>> parts = cut(*exchanges);
  fit_all(parts, 0, &result);
  result.drift_doubt = 0;
  find_drift(&result);
  fit_all(parts, result.drift, &result);
  result.dropped_count = exchanges->size() - result.ping_count;
  const auto delayed = std::count_if(exchanges->begin(), exchanges->end(), [&](const Exchange& e) {
    return static_cast<double>(e.high_ns - e.low_ns) > kDelayed * result.floor_ns;
  });
  result.delayed_share = static_cast<double>(delayed) / static_cast<double>(exchanges->size());
  return result;
}

}  // namespace aon::clock
