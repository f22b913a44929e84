// What annotated regions tell of programs whose communication is not seen (gloo, sockets): a rank
// that is much longer than the others in one of them. Who waits for whom is not known there.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/median.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kUnevenRatio = 1.5;  ///< of the longest rank's time to the median of the others
constexpr double kLeastShare = 0.01;  ///< of the rank's whole time that the difference must be

struct Uneven {
  uint32_t region = 0;
  size_t rank = 0;
  double longest_s = 0;
  double others_s = 0;
};

}  // namespace

bool Findings::sees_communication() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const RankTime& rank) { return rank.mpi_ns != 0; });
}

void Findings::add_uneven_region(std::vector<Finding>* findings) const {
  std::map<uint32_t, std::vector<std::pair<double, size_t>>> by_region;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    for (const auto& [region, time_ns] : ranks_[r].by_annotation)
      by_region[region].emplace_back(static_cast<double>(time_ns) * 1e-9, r);
  }
  Uneven worst;
  for (const auto& [region, times] : by_region) {
    if (times.size() < 2) continue;
    const auto longest = std::max_element(times.begin(), times.end());
    std::vector<double> others;
    for (const auto& time : times) {
      if (time.second != longest->second) others.push_back(time.first);
    }
    const double others_s = upper_median(std::move(others));
    const RankTime& rank = ranks_[longest->second];
    const double whole_s = static_cast<double>(rank.last_ns - rank.first_ns) * 1e-9;
    const double more_s = longest->first - others_s;
    const bool is_uneven =
        longest->first >= kUnevenRatio * others_s && more_s >= kLeastShare * whole_s;
    if (is_uneven && more_s > worst.longest_s - worst.others_s)
      worst = {region, longest->second, longest->first, others_s};
  }
  if (worst.longest_s == 0) return;
  findings->push_back(
      {worst.longest_s - worst.others_s,
       fmt::format("region {} takes {} on rank {}, {} on the others (median)",
                   model_->regions[worst.region].name, seconds_text(worst.longest_s), worst.rank,
                   seconds_text(worst.others_s))});
}

}  // namespace aon::writers
