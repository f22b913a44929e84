#include "core/spool/nccl_levels.h"

namespace aon::spool {

std::optional<NcclStanding> nccl_standing(const Process& process) {
  std::optional<NcclStanding> standing;
  for (const BudgetDefinition& change : process.budget_changes) {
    if (is_nccl_answer(change)) {
      const NcclAnswer answer = NcclAnswer::of(change.old_mode);
      // A new agent tells how it stands, not why.
      const bool is_known = standing && answer.asked == NcclLevel::kOff &&
                            standing->stamp == change.new_mode && standing->level == answer.level;
      if (!is_known) standing = {answer.level, change.new_mode, answer, false};
    } else if (is_nccl_level_change(change) && standing) {
      standing->level = nccl_level_in(change, change.new_mode);
      standing->is_by_budget = true;
    }
  }
  return standing;
}

}  // namespace aon::spool
