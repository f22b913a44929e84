#include "writers/otf2/nccl_timelines.h"

#include <algorithm>

namespace aon::writers::otf2 {

NcclTimelines::NcclTimelines(const Model& model, bool as_mpi) : model_(model), as_mpi_(as_mpi) {
  std::map<uint32_t, Places> places;  // by communicator
  for (const Location& location : model.locations) {
    if (!location.in_archive || !is_nccl_timeline(model, location)) continue;
    const Group& group = model.groups[location.group];
    const uint64_t index = index_of(location.id);
    const auto global = group.communicator_map.find(location.device_stream);
    if (global == group.communicator_map.end()) continue;
    const uint32_t rank =
        group.process->communicators.find(location.device_stream)->second.definition.rank;
    if (rank < model.communicators[global->second].members.size())
      places[global->second][rank] = index;
  }
  for (const auto& [communicator, known] : places) fill(communicator, known);
}

uint64_t NcclTimelines::index_of(uint64_t location) {
  const auto [found, is_new] = indices_.try_emplace(location, locations_.size());
  if (is_new) locations_.push_back(location);
  return found->second;
}

void NcclTimelines::fill(uint32_t communicator, const Places& places) {
  const std::vector<int64_t>& told = model_.communicators[communicator].members;
  std::vector<bool> is_used(model_.groups.size());
  for (const int64_t group : told) {
    if (group >= 0 && static_cast<size_t>(group) < is_used.size()) is_used[group] = true;
  }
  uint32_t next = 0;  // of the processes that may stand for a member
  const uint64_t first = as_mpi_ ? model_.groups.size() : 0;
  // By its master thread, whose id is the group's; MPI has all of those already.
  const auto process = [&](uint64_t group) { return as_mpi_ ? group : index_of(group); };
  std::vector<uint64_t> members(told.size());
  for (uint32_t rank = 0; rank < told.size(); ++rank) {
    const auto known = places.find(rank);
    if (known != places.end()) {
      members[rank] = first + known->second;
      continue;
    }
    if (told[rank] >= 0) {
      members[rank] = process(static_cast<uint64_t>(told[rank]));
      continue;
    }
    while (next < is_used.size() && is_used[next]) ++next;
    if (next < is_used.size()) members[rank] = process(next++);
  }
  member_count_ = std::max(member_count_, members.size());
  members_[communicator] = std::move(members);
  if (!as_mpi_) windows_.push_back(communicator);
}

const std::vector<uint64_t>& NcclTimelines::members(uint32_t communicator) const {
  static const std::vector<uint64_t> kNone;
  const auto found = members_.find(communicator);
  return found == members_.end() ? kNone : found->second;
}

uint32_t NcclTimelines::window(uint32_t communicator) const {
  const auto found = std::lower_bound(windows_.begin(), windows_.end(), communicator);
  if (found == windows_.end() || *found != communicator) return kNoWindow;
  return static_cast<uint32_t>(model_.windows.size() + (found - windows_.begin()));
}

}  // namespace aon::writers::otf2
