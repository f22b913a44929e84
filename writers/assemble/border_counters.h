/// The metrics of a process that are counters at the borders of calls: kCounters records have their
/// values, no kSample does.
/// Depends on record.h only.
#pragma once

#include <aon/record.h>

#include <cstdint>

namespace aon::writers {

/// By the id that the process gave it.
constexpr bool is_border_counter(uint32_t metric) {
  return metric - kFirstCounterMetric < kMaxRegionCounters;
}

}  // namespace aon::writers
