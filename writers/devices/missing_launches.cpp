#include "writers/devices/missing_launches.h"

#include <algorithm>

#include "writers/devices/devices.h"

namespace aon::writers::devices {

void ThinnedTimes::add(uint64_t time_ns) {
  if (seen_count_++ % stride_ != 0) return;
  times_ns_.push_back(time_ns);
  if (times_ns_.size() < kMaxTimes) return;
  for (size_t i = 0; i < times_ns_.size() / 2; ++i) times_ns_[i] = times_ns_[2 * i];
  times_ns_.resize(times_ns_.size() / 2);
  stride_ *= 2;
}

void ThinnedTimes::sort() { std::sort(times_ns_.begin(), times_ns_.end()); }

uint64_t ThinnedTimes::count(uint64_t begin_ns, uint64_t end_ns) const {
  const auto first = std::lower_bound(times_ns_.begin(), times_ns_.end(), begin_ns);
  const auto last = std::lower_bound(first, times_ns_.end(), end_ns);
  return std::min(static_cast<uint64_t>(last - first) * stride_, seen_count_);
}

MissingLaunches::MissingLaunches(const Captures& captures, bool has_graphs) {
  const bool has_captures = !captures.is_empty();
  is_known_ = has_captures ? !captures.has_rests() : !has_graphs;
  if (is_known_) captures_ = captures.times();
}

void MissingLaunches::add(uint64_t start_ns, bool has_work) {
  if (!is_known_) return;
  if (has_work) {
    launched_.add(start_ns);
  } else if (captures_.overlap_ns(start_ns, start_ns + 1) == 0) {
    missing_.add(start_ns);
  }
}

void MissingLaunches::sort() {
  launched_.sort();
  missing_.sort();
}

uint64_t MissingLaunches::count(uint64_t begin_ns, uint64_t end_ns) const {
  return missing_.count(begin_ns, end_ns);
}

bool MissingLaunches::are_many(uint64_t begin_ns, uint64_t end_ns) const {
  const uint64_t missing_count = count(begin_ns, end_ns);
  // Of the launches between two that were kept it may have all.
  const uint64_t launched_count = launched_.count(begin_ns, end_ns) + launched_.stride() - 1;
  const auto all = static_cast<double>(missing_count + launched_count);
  return static_cast<double>(missing_count) > kMostMissingLaunches * all;
}

}  // namespace aon::writers::devices
