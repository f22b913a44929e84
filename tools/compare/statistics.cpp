#include "tools/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace aon::tools::compare {
namespace {

double mean_of_values(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// One step of Lentz's algorithm: c and d go on by the coefficient.
double go_on(double coefficient, double* c, double* d) {
  constexpr double kTiny = 1e-300;
  *d = 1 + coefficient * *d;
  *c = 1 + coefficient / *c;
  if (std::abs(*d) < kTiny) *d = kTiny;
  if (std::abs(*c) < kTiny) *c = kTiny;
  *d = 1 / *d;
  return *c * *d;
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), for x < (a + 1) /
/// (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMost = 1000;
  constexpr double kExact = 1e-14;
  double c = 1;
  double d = 1 / (1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < kMost; ++m) {
    value *= go_on(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), &c, &d);
    const double factor =
        go_on(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), &c, &d);
    value *= factor;
    if (std::abs(factor - 1) < kExact) break;
  }
  return value;
}

/// I_x(a, b), the regularised incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// P(|T| > t) (M. Abramowitz and I. A. Stegun, 26.7.1 and 26.5.27).
double outside(double t, double freedom) {
  return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

/// The correlation of each value with the next one; what few values say too little by is added.
double correlation(std::span<const double> values, double mean) {
  constexpr double kMost = 0.9;
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i != 0) products += (values[i - 1] - mean) * (values[i] - mean);
  }
  if (squares <= 0) return 0;
  return std::clamp(products / squares + 1 / static_cast<double>(values.size()), 0.0, kMost);
}

/// By Welch and Satterthwaite; no variance at all leaves nothing to be uncertain of.
double joint_freedom(double first, double first_freedom, double second, double second_freedom) {
  const double sum = first + second;
  if (sum <= 0) return first_freedom + second_freedom;
  return sum * sum / (first * first / first_freedom + second * second / second_freedom);
}

double relative_variance(const Estimate& of) { return of.variance / (of.mean * of.mean); }

}  // namespace

Estimate of_values(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Estimate estimate{.mean = mean_of_values(values)};
  if (values.size() < 2) return estimate;
  for (const double value : values)
    estimate.variance += (value - estimate.mean) * (value - estimate.mean);
  estimate.variance /= (count - 1) * count;
  estimate.freedom = count - 1;
  return estimate;
}

Estimate of_series(std::span<const double> values) {
  if (values.size() < kLeastSteps) {
    return values.empty() ? Estimate{} : Estimate{.mean = mean_of_values(values)};
  }
  const size_t batch_count = std::min(kBatches, values.size());
  std::vector<double> means;
  for (size_t i = 0; i < batch_count; ++i) {
    const size_t begin = values.size() * i / batch_count;
    const size_t end = values.size() * (i + 1) / batch_count;
    means.push_back(mean_of_values(values.subspan(begin, end - begin)));
  }
  Estimate estimate = of_values(means);
  const double alike = correlation(means, estimate.mean);
  estimate.variance *= (1 + alike) / (1 - alike);
  estimate.freedom = std::max(1.0, estimate.freedom * (1 - alike) / (1 + alike));
  estimate.mean = mean_of_values(values);
  return estimate;
}

Estimate like_others(double value, std::span<const double> others) {
  const Estimate of = of_values(others);
  if (of.freedom <= 0 || of.mean <= 0) return {.mean = value};
  const double relative = of.variance * static_cast<double>(others.size()) / (of.mean * of.mean);
  return {.mean = value, .variance = relative * value * value, .freedom = of.freedom};
}

Estimate mean_of(std::span<const Estimate> estimates) {
  if (estimates.empty()) return {};
  const auto count = static_cast<double>(estimates.size());
  Estimate all;
  double quartic = 0;  // of Welch and Satterthwaite
  bool is_known = true;
  for (const Estimate& one : estimates) {
    const double variance = one.variance / (count * count);
    all.mean += one.mean / count;
    all.variance += variance;
    is_known = is_known && one.freedom > 0;
    if (is_known) quartic += variance * variance / one.freedom;
    all.freedom += one.freedom;
  }
  if (!is_known) return {.mean = all.mean};
  if (quartic > 0) all.freedom = all.variance * all.variance / quartic;
  return all;
}

Change change_between(const Estimate& base, const Estimate& now, double error,
                      std::optional<double> freedom) {
  Change change;
  change.base = base.mean;
  change.now = now.mean;
  if (base.freedom <= 0 || now.freedom <= 0) return change;
  if (std::isnan(base.mean) || std::isnan(now.mean)) return change;  // of some run it is not told
  const auto t = [&](double first, double second) {
    return student_t(error,
                     freedom ? *freedom : joint_freedom(first, base.freedom, second, now.freedom));
  };
  const double reach = t(base.variance, now.variance) * std::sqrt(base.variance + now.variance);
  const double middle = now.mean - base.mean;
  change.difference = Interval{middle - reach, middle + reach};
  if (!(base.mean > 0) || !(now.mean > 0)) return change;
  const double first = relative_variance(base);
  const double second = relative_variance(now);
  const double factor = std::exp(t(first, second) * std::sqrt(first + second));
  if (!std::isfinite(factor)) return change;  // anything may be so
  const double ratio = now.mean / base.mean;
  change.ratio = Interval{ratio / factor, ratio * factor};
  return change;
}

double student_t(double error, double freedom) {
  double high = 1;
  while (outside(high, freedom) > error && high < 1e12) high *= 2;
  double low = 0;
  for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
    const double middle = (low + high) / 2;
    (outside(middle, freedom) > error ? low : high) = middle;
  }
  return high;
}

}  // namespace aon::tools::compare
