/// Means with their uncertainty, and how two of them differ: the arithmetic of `aon diff`.
///
///     independent values x_1..x_n     mean, s^2 / n, n - 1 degrees of freedom
///     a series of steps               the same of the means of kBatches batches in a row
///
/// Steps that follow one another are alike, so n steps say less than n values would; means of long
/// batches are nearly independent (batch means: R. W. Conway, "Some tactical problems in digital
/// simulation", Management Science 10, 1963; A. M. Law and J. S. Carson, Operations Research 27,
/// 1979). Those of short batches are not: with r, the correlation of a batch with the next one, the
/// variance of the mean is (1 + r) / (1 - r) times as large, as of a process of first order, and
/// the degrees of freedom as much fewer. Two means are compared with unequal variances (B. L.
/// Welch, Biometrika 34, 1947): with variances v of the means and f degrees of freedom,
///
///     difference      m2 - m1 +- t sqrt(v1 + v2)
///     f               (v1 + v2)^2 / (v1^2 / f1 + v2^2 / f2)       (Welch and Satterthwaite)
///     ratio           m2 / m1 times exp(+- t sqrt(w1 + w2)),  w = v / m^2  (delta method, of logs)
///
/// Thread: any.   Cost: proportional to the values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace aon::tools::compare {

constexpr size_t kBatches = 20;
constexpr size_t kLeastSteps = 20;  ///< fewer tell no variance

/// A mean; without degrees of freedom its uncertainty is not known.
struct Estimate {
  double mean = 0;
  double variance = 0;  ///< of the mean
  double freedom = 0;
};

Estimate of_values(std::span<const double> values);
Estimate of_series(std::span<const double> values);
/// The mean of several estimates that do not depend on one another.
Estimate mean_of(std::span<const Estimate> estimates);

struct Interval {
  double low = 0;
  double high = 0;
  bool holds(double value) const { return low <= value && value <= high; }
};

/// What became of a quantity.
struct Change {
  double base = 0;
  double now = 0;
  std::optional<Interval> difference;  ///< of now - base
  std::optional<Interval> ratio;       ///< of now / base; none where either is not above 0
};

/// `error`: how often the interval may miss what is true, 0.05 for one of 95 %. `freedom`: where
/// both variances come of the same values; else Welch's.
Change change_between(const Estimate& base, const Estimate& now, double error,
                      std::optional<double> freedom = std::nullopt);

/// One value that varies as those of `others` do, relative to their mean (variance s^2, where
/// theirs is that of their mean, s^2 / n): with it the interval is one of prediction.
Estimate like_others(double value, std::span<const double> others);

/// t with P(|T| > t) = `error` of Student's distribution with `freedom` > 0 degrees of freedom.
double student_t(double error, double freedom);

}  // namespace aon::tools::compare
