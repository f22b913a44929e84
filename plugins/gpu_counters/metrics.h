/// Which counters of a GPU are sampled, by NVIDIA's names, and the series they become. A set fits
/// into one pass of the hardware on each chip it is for: nothing is multiplexed or replayed.
///
/// The names that end in _realtime, and those of the hardware's group TriageCompute, are made for
/// sampling; the like-named others need several passes. What a chip does not have is left out.
/// Source: cuptiProfilerHostGetBaseMetrics of CUDA 13.0; the sets were made by trying.
/// Depends on nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace aon::gpu_counters {

/// How a value of NVIDIA's becomes one of the series.
enum class Formula : uint8_t {
  kPercent,    ///< / 100
  kPerSecond,  ///< a count of the sample / its length
  kAsItIs
};

struct Metric {
  const char* name;  ///< NVIDIA's
  Formula formula;
  const char* series;
  const char* unit;
  const char* description;
};

/// "core" or "wide"; empty for another name.
std::span<const Metric> metric_set(std::string_view name);

/// The value of the series.   `duration_ns` is the sample's length; 0: no rate, NaN.
double value_of(Formula formula, double value, uint64_t duration_ns);

}  // namespace aon::gpu_counters
