#include "writers/devices/missing_launches.h"

#include <algorithm>

namespace aon::writers::devices {
namespace {

uint64_t count_in(const std::vector<uint64_t>& times_ns, uint64_t begin_ns, uint64_t end_ns) {
  const auto first = std::lower_bound(times_ns.begin(), times_ns.end(), begin_ns);
  return static_cast<uint64_t>(std::lower_bound(first, times_ns.end(), end_ns) - first);
}

}  // namespace

MissingLaunches::MissingLaunches(const Calls& calls) {
  const bool has_graphs = std::any_of(calls.all().begin(), calls.all().end(),
                                      [](const Call& call) { return call.is_of_graph != 0; });
  const bool has_captures = !calls.captures().is_empty();
  if (has_graphs && !has_captures) return;
  if (has_captures && calls.captures().has_rests()) return;
  const BlindTimes captures = calls.captures().times();
  for (const Call& call : calls.all()) {
    if (call.is_of_kernel == 0 || call.has_work != 0) continue;
    if (captures.overlap_ns(call.start_ns, call.start_ns + 1) == 0)
      missing_ns_.push_back(call.start_ns);
  }
  if (missing_ns_.empty()) return;
  all_ns_ = missing_ns_;
  for (const Call& call : calls.all()) {
    if (call.is_of_kernel != 0 && call.has_work != 0) all_ns_.push_back(call.start_ns);
  }
  std::sort(missing_ns_.begin(), missing_ns_.end());
  std::sort(all_ns_.begin(), all_ns_.end());
}

uint64_t MissingLaunches::count(uint64_t begin_ns, uint64_t end_ns) const {
  return count_in(missing_ns_, begin_ns, end_ns);
}

bool MissingLaunches::are_many(uint64_t begin_ns, uint64_t end_ns) const {
  const auto all = static_cast<double>(count_in(all_ns_, begin_ns, end_ns));
  return static_cast<double>(count(begin_ns, end_ns)) > kMostMissingLaunches * all;
}

}  // namespace aon::writers::devices
