/// A model of a few ranks without a job behind it, and shorthands for events.
#pragma once

#include <cstdint>
#include <string>

#include "writers/writer.h"

namespace aon::writers::test {

/// `ranks` groups with one location each; local region r is global region 10 - r (r below 5), local
/// communicator 7 is the world.
inline Model make_model(uint32_t ranks) {
  Model model{};
  model.regions.resize(11, {"region", RegionRole::kFunction, Paradigm::kUser});
  model.communicators.push_back({"MPI_COMM_WORLD", CommunicatorKind::kWorld, {}, {}});
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Group group{};
    group.id = rank;
    group.rank = rank;
    group.process = nullptr;
    for (uint32_t region = 0; region < 5; ++region) group.region_map[region] = 10 - region;
    group.communicator_map[7] = 0;
    model.groups.push_back(group);
    model.locations.push_back({.id = rank,
                               .group = rank,
                               .type = LocationType::kThread,
                               .name = "Master thread",
                               .process = rank,
                               .slot = 1,
                               .in_archive = true});
    model.communicators[0].members.push_back(rank);
  }
  return model;
}

inline Event event(EventKind kind, uint64_t time_ns, uint32_t region, uint32_t weight = 1) {
  Event e{};
  e.kind = kind;
  e.time_ns = time_ns;
  e.region = region;
  e.weight = weight;
  e.peer = -1;
  return e;
}
inline Event enter(uint64_t time_ns, uint32_t region, uint32_t weight = 1) {
  return event(EventKind::kEnter, time_ns, region, weight);
}
inline Event leave(uint64_t time_ns, uint32_t region) {
  return event(EventKind::kLeave, time_ns, region);
}
inline Event send(uint64_t time_ns, int32_t peer, uint64_t bytes) {
  Event e = event(EventKind::kSend, time_ns, 0);
  e.communicator = 7;
  e.peer = peer;
  e.bytes = bytes;
  return e;
}

}  // namespace aon::writers::test
