#include "writers/ledger/ledger_nccl.h"

#include <aon/nccl.h>
#include <aon/ring.h>

#include "core/base/time.h"

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

/// Of a mode word of kNcclProxySite or kNcclFixedSite.
const char* level_name(uint32_t site, uint32_t mode) {
  const bool is_fixed = site == kNcclFixedSite;
  if (mode < kModeSample || mode >= kModeOff) return is_fixed ? "gpu" : "api";
  const uint32_t period = mode - kModeSample + 1;
  if (period >= kNcclLowestPeriod) return is_fixed ? "net" : "gpu";
  return period == 1 || is_fixed ? "step" : "net";
}

bool is_level_change(const BudgetDefinition& change) {
  return change.site == kNcclProxySite || change.site == kNcclFixedSite;
}

}  // namespace

Json nccl_level_changes_json(const LedgerFacts& facts) {
  Json changes = Json::array();
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr) continue;
    for (const BudgetDefinition& change : group.process->budget_changes) {
      if (!is_level_change(change) || changes.size() >= kMaxLevelChanges) continue;
      changes.push_back({{"process", group.id},
                         {"rank", group.rank ? Json(*group.rank) : Json()},
                         {"time", iso_time(facts.clocks[group.node].to_ns(change.ticks))},
                         {"from", level_name(change.site, change.old_mode)},
                         {"to", level_name(change.site, change.new_mode)}});
    }
  }
  return changes;
}

std::string lowered_level(const spool::Process& process) {
  const BudgetDefinition* first = nullptr;
  const BudgetDefinition* lowest = nullptr;  // a longer period, behind all of them kModeCount
  const auto depth = [](uint32_t mode) { return mode < kModeSample ? UINT32_MAX : mode; };
  for (const BudgetDefinition& change : process.budget_changes) {
    if (!is_level_change(change)) continue;
    if (first == nullptr) first = &change;
    if (lowest == nullptr || depth(change.new_mode) > depth(lowest->new_mode)) lowest = &change;
  }
  if (first == nullptr) return {};
  return std::string("the budget lowered the level from ") +
         level_name(first->site, first->old_mode) + " to " +
         level_name(lowest->site, lowest->new_mode) + ", for a time or to the end";
}

}  // namespace aon::writers::ledger
