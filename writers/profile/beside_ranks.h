/// What was followed beside the ranks, as a script or driver that starts them: nothing that is
/// known of it is theirs.
/// Thread: any.   Cost: a pass over the streams of the process and of who has its rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writers/profile/silent.h"

namespace aon::writers::profile {

/// Whether who has the rank that the launcher gave to `group`, which was only followed, may have
/// been started by it; also where nobody has it. Otherwise it was a rank itself, of another program
/// of the launch.
inline bool may_be_above_its_rank(const Model& model, const Group& group) {
  if (group.process == nullptr || group.process->start.rank < 0) return true;
  const spool::Process& process = *group.process;
  const auto rank = static_cast<size_t>(process.start.rank);
  if (rank >= model.groups.size() || !model.groups[rank].rank) return true;
  const Group& holder = model.groups[rank];
  if (is_silent(holder)) return false;
  const ProcessStartDefinition& its = holder.process->start;
  const uint64_t end_ticks = process.exit ? process.exit->end_ticks : UINT64_MAX;
  return model.job->nodes[holder.node].host == model.job->nodes[group.node].host &&
         its.start_time_ticks >= process.start.start_time_ticks && its.attach_ticks <= end_ticks;
}

inline bool is_beside_ranks(const Model& model, const Group& group) {
  const bool has_ranks = !model.groups.empty() && model.groups.front().rank;  // they come first
  return has_ranks && !group.rank && is_silent(group) && may_be_above_its_rank(model, group);
}

}  // namespace aon::writers::profile
