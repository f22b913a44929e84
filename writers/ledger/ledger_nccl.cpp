#include "writers/ledger/ledger_nccl.h"

#include <aon/nccl.h>
#include <aon/ring.h>

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

/// Of a mode word of kNcclProxySite.
const char* level_name(uint32_t mode) {
  if (mode < kModeSample || mode >= kModeOff) return "api";
  const uint32_t period = mode - kModeSample + 1;
  if (period == 1) return "step";
  return period < kNcclLowestPeriod ? "net" : "gpu";
}

}  // namespace

Json nccl_level_changes_json(const LedgerFacts& facts) {
  Json changes = Json::array();
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr) continue;
    for (const BudgetDefinition& change : group.process->budget_changes) {
      if (change.site != kNcclProxySite || changes.size() >= kMaxLevelChanges) continue;
      changes.push_back({{"process", group.id},
                         {"rank", group.rank ? Json(*group.rank) : Json()},
                         {"time", iso_time(facts.clocks[group.node].to_ns(change.ticks))},
                         {"from", level_name(change.old_mode)},
                         {"to", level_name(change.new_mode)}});
    }
  }
  return changes;
}

}  // namespace aon::writers::ledger
