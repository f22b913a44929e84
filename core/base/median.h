/// The middle one of some values; where there are two, which of them is said.
/// Thread: any.   Cost: linear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace aon {

/// The upper one of two; 0 of none.
template <class T>
T upper_median(std::vector<T> values) {
  if (values.empty()) return T();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The lower one of two; 0 of none.
template <class T>
T lower_median(std::vector<T> values) {
  if (values.empty()) return T();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace aon
