/// What the spool tells of the levels of NCCL that a process had while it ran: those the user asked
/// for (`aon level`) and those the budget chose.
/// Thread: any.   Cost: of the process's changes of modes.
#pragma once

#include <aon/nccl_level.h>

#include <optional>

#include "core/spool/job.h"

namespace aon::spool {

/// A change of the level by the budget.
constexpr bool is_nccl_level_change(const BudgetDefinition& change) {
  return change.site == kNcclProxySite || change.site == kNcclFixedSite;
}

/// A level before or after such a change.
constexpr NcclLevel nccl_level_in(const BudgetDefinition& change, uint32_t mode) {
  return nccl_level_of(mode, change.site == kNcclFixedSite);
}

/// What the agent tells of the user's wish, a change of no mode.
constexpr bool is_nccl_answer(const BudgetDefinition& change) {
  return change.site == kNcclAskedSite;
}

/// Where a process stands after all of it.
struct NcclStanding {
  NcclLevel level;            ///< that NCCL is asked for, from its next group on
  uint32_t stamp = 0;         ///< of the wish that it has heeded; 0: none
  NcclAnswer answer;          ///< to that; asked kOff where it is an earlier agent's
  bool is_by_budget = false;  ///< the budget has the last word
};

/// Nothing where no agent has seen that it uses NCCL with our plugin.
std::optional<NcclStanding> nccl_standing(const Process& process);

}  // namespace aon::spool
