// Who comes late to collectives, and what that costs the others.

#include <fmt/format.h>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kLeastCausedShare = 0.01;  ///< of the ranks' time
constexpr double kLeastBlame = 1.5;         ///< times what everybody would cause, shared evenly

}  // namespace

bool Findings::add_latecomer(std::vector<Finding>* findings) const {
  if (waits_ == nullptr || total_ns() == 0) return false;
  const Latecomer late = find_latecomer(waits_->lateness.rows());
  if (late.caused_ns == 0) return false;
  const auto caused_ns = static_cast<double>(late.caused_ns);
  const double even_ns = static_cast<double>(late.all_ns) / static_cast<double>(ranks_.size());
  const Group& group = model_->groups[late.group];
  if (!group.rank || caused_ns < kLeastCausedShare * static_cast<double>(total_ns()) ||
      caused_ns < kLeastBlame * even_ns) {
    return false;
  }
  findings->push_back(
      {caused_ns * 1e-9,
       fmt::format("rank {} on {} came last to {} of {} collectives: the others waited {} for it, "
                   "{} of it in {}",
                   *group.rank, model_->job->nodes[group.node].host, grouped(late.last_count),
                   grouped(late.count), seconds_text(caused_ns * 1e-9),
                   seconds_text(static_cast<double>(late.region_ns) * 1e-9),
                   model_->regions[late.region].name)});
  return true;
}

}  // namespace aon::writers
