// Calls that the agents saw open for a long time, in global ids and nanoseconds.

#include "writers/assemble/model_parts.h"

namespace aon::writers {

void build_open_calls(JobModel* parts) {
  Model& model = parts->model;
  const auto global = [](const std::unordered_map<uint32_t, uint32_t>& map, uint32_t id) {
    const auto found = map.find(id);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  };
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [slot, told] : group.process->open_calls) {
      OpenCall call{};
      call.group = group.id;
      call.slot = slot;
      call.tid = told.tid;
      call.region = global(group.region_map, told.region).value_or(kUnknownRegion);
      call.communicator = global(group.communicator_map, told.communicator);
      const bool is_message = call.region < model.regions.size() &&
                              model.regions[call.region].role == RegionRole::kPointToPoint &&
                              call.communicator;
      call.peer = is_message ? pair_low(told.peer_tag) : kNoPeer;
      call.start_ns = parts->clocks[group.node].to_ns(told.start_ticks);
      model.open_calls.push_back(call);
    }
  }
}

}  // namespace aon::writers
