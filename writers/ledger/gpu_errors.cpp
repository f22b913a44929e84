#include "writers/ledger/gpu_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/digits.h"

namespace aon::writers {

std::string gpu_errors_finding(const Model& model, const MetricTotals& totals) {
  // A node whose containers had an agent each told of its errors several times.
  std::map<std::pair<std::string, std::string>, uint64_t> counts;
  for (size_t node = 0; node < totals.gpu_errors.size(); ++node) {
    for (const auto& [error, count] : totals.gpu_errors[node]) {
      uint64_t& largest = counts[{model.job->nodes[node].host, error}];
      largest = std::max(largest, count);
    }
  }
  uint64_t sum = 0;
  uint64_t most = 0;
  std::string what;
  for (const auto& [where, count] : counts) {
    sum += count;
    if (count <= most) continue;
    most = count;
    what = fmt::format("{} on {}", where.second, where.first);
  }
  constexpr const char* kHelp = "(docs.nvidia.com/deploy/xid-errors)";
  if (sum == 0) return "";
  if (sum == 1) return fmt::format("the driver reported an error of a GPU: {} {}", what, kHelp);
  return fmt::format("the driver reported {} errors of GPUs, {} times {} {}", grouped(sum),
                     grouped(most), what, kHelp);
}

}  // namespace aon::writers
