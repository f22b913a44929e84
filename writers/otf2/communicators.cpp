// Communicators of the archive: the locations that communicate, one group of indices into them per
// communicator, and the communicators themselves.

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "writers/otf2/definitions.h"
#include "writers/profile/silent.h"

namespace aon::writers::otf2 {

GroupIds::GroupIds(const Model& model, const NcclTimelines& timelines) {
  uint32_t next = 0;
  for (const Paradigm paradigm : kGroupedParadigms) {
    next += std::any_of(model.regions.begin(), model.regions.end(),
                        [=](const GlobalRegion& region) { return region.paradigm == paradigm; });
  }
  locations = next++;
  if (!timelines.is_empty() && !timelines.as_mpi()) nccl_locations = next++;
  for (size_t i = 0; i < model.communicators.size(); ++i) of_communicators.push_back(next++);
  first_rank_group = next;
  first_device_group = next + static_cast<uint32_t>(model.rank_groups.size());
}

/// COMM_LOCATIONS holds the master location of every rank, at the rank's index, then those of
/// further groups: an index is a group id. Timelines of NCCL have their own, or follow.
void GlobalDefinitions::write_communicators() {
  guesses_.resize(model_.groups.size());
  std::iota(guesses_.begin(), guesses_.end(), 0u);
  std::stable_partition(guesses_.begin(), guesses_.end(), [this](uint32_t group) {
    const Group& one = model_.groups[group];
    return one.rank && profile::is_silent(one);
  });
  std::vector<uint64_t> masters(model_.groups.size());
  std::iota(masters.begin(), masters.end(), uint64_t{0});
  const std::vector<uint64_t>& timelines = timelines_.locations();
  if (timelines_.as_mpi()) masters.insert(masters.end(), timelines.begin(), timelines.end());
  note(OTF2_GlobalDefWriter_WriteGroup(file_, groups_.locations, string_id("MPI_LOCATIONS"),
                                       OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                       OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(masters.size()),
                                       masters.data()));
  if (groups_.nccl_locations != 0) {
    const std::vector<uint64_t> all = cuda_locations();
    note(OTF2_GlobalDefWriter_WriteGroup(
        file_, groups_.nccl_locations, string_id("CUDA_LOCATIONS"), OTF2_GROUP_TYPE_COMM_LOCATIONS,
        OTF2_PARADIGM_CUDA, OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(all.size()), all.data()));
  }
  uint32_t id = 0;
  for (const GlobalCommunicator& communicator : model_.communicators) {
    write_communicator(id++, communicator);
  }
}

void GlobalDefinitions::write_nccl_group(uint32_t id, const GlobalCommunicator& communicator) {
  const std::vector<uint64_t>& members = timelines_.members(id);
  const OTF2_Paradigm paradigm =
      groups_.nccl_locations != 0 ? OTF2_PARADIGM_CUDA : OTF2_PARADIGM_MPI;
  note(OTF2_GlobalDefWriter_WriteGroup(
      file_, groups_.of_communicators[id], string_id(communicator.name), OTF2_GROUP_TYPE_COMM_GROUP,
      paradigm, OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(members.size()), members.data()));
}

void GlobalDefinitions::write_communicator(uint32_t id, const GlobalCommunicator& communicator) {
  const uint32_t group = groups_.of_communicators[id];
  if (communicator.kind == CommunicatorKind::kSelf) {
    note(OTF2_GlobalDefWriter_WriteGroup(file_, group, string_id(""), OTF2_GROUP_TYPE_COMM_SELF,
                                         OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, 0, nullptr));
  } else if (communicator.kind == CommunicatorKind::kNccl) {
    write_nccl_group(id, communicator);
  } else {
    const std::vector<uint64_t> members = member_indices(communicator);
    note(OTF2_GlobalDefWriter_WriteGroup(
        file_, group, string_id(communicator.name), OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
        OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(members.size()), members.data()));
  }
  const bool has_parent = communicator.parent && *communicator.parent < id;
  note(OTF2_GlobalDefWriter_WriteComm(file_, id, string_id(communicator.name), group,
                                      has_parent ? *communicator.parent : OTF2_UNDEFINED_COMM,
                                      OTF2_COMM_FLAG_NONE));
}

/// Of each communicator that has one: the topology, its dimensions, and where each rank is. A
/// program may make one in every step: what is beyond the limit stands in /communicators alone.
void GlobalDefinitions::write_cartesian_topologies() {
  constexpr size_t kMaxCoordinates = size_t{1} << 20;
  uint32_t topology = 0;
  uint32_t next_dimension = 0;
  size_t coordinate_count = 0;
  for (uint32_t id = 0; id < model_.communicators.size(); ++id) {
    const GlobalCommunicator& communicator = model_.communicators[id];
    if (!communicator.cartesian) continue;
    coordinate_count += communicator.members.size();
    if (coordinate_count > kMaxCoordinates) break;
    const std::vector<uint32_t>& extents = communicator.cartesian->extents;
    const auto count = static_cast<uint8_t>(extents.size());
    std::vector<uint32_t> dimensions(count);
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_ring = (communicator.cartesian->periodic >> i & 1) != 0;
      dimensions[i] = next_dimension++;
      note(OTF2_GlobalDefWriter_WriteCartDimension(
          file_, dimensions[i], string_id("dimension " + std::to_string(i)), extents[i],
          is_ring ? OTF2_CART_PERIODIC_TRUE : OTF2_CART_PERIODIC_FALSE));
    }
    const std::string name = communicator.name.empty()
                                 ? "Cartesian topology " + std::to_string(topology)
                                 : communicator.name;
    note(OTF2_GlobalDefWriter_WriteCartTopology(file_, topology, string_id(name), id, count,
                                                dimensions.data()));
    std::vector<uint32_t> at(count);
    for (uint32_t rank = 0; rank < communicator.members.size(); ++rank) {
      uint32_t rest = rank;
      for (size_t i = count; i-- > 0; rest /= extents[i]) at[i] = rest % extents[i];
      note(OTF2_GlobalDefWriter_WriteCartCoordinate(file_, topology, rank, count, at.data()));
    }
    ++topology;
  }
}

/// The groups of epochs (MPI_Win_start, MPI_Win_post), then the windows.
void GlobalDefinitions::write_windows() {
  uint32_t group_id = groups_.first_rank_group;
  for (const RankGroup& group : model_.rank_groups) {
    const std::vector<uint64_t> members(group.members.begin(), group.members.end());
    note(OTF2_GlobalDefWriter_WriteGroup(
        file_, group_id++, string_id(""), OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
        OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(members.size()), members.data()));
  }
  uint32_t id = 0;
  for (const GlobalWindow& window : model_.windows) {
    note(OTF2_GlobalDefWriter_WriteRmaWin(file_, id++, string_id(window.name), window.communicator,
                                          OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS));
  }
  for (const uint32_t communicator : timelines_.communicators_with_window()) {
    const std::string& name = model_.communicators[communicator].name;
    note(OTF2_GlobalDefWriter_WriteRmaWin(file_, id++, string_id("NCCL " + name), communicator,
                                          OTF2_RMA_WIN_FLAG_NONE));
  }
}

/// A paradigm has one COMM_LOCATIONS: timelines of NCCL, where they are not MPI's, then the members
/// of windows of copies that are not among them.
std::vector<uint64_t> GlobalDefinitions::cuda_locations() const {
  std::vector<uint64_t> all;
  if (groups_.nccl_locations != 0) all = timelines_.locations();
  std::unordered_set<uint64_t> known(all.begin(), all.end());
  for (const DeviceWindows::Window& window : devices_.windows()) {
    for (const uint64_t location : window.members) {
      if (known.insert(location).second) all.push_back(location);
    }
  }
  return all;
}

/// A group, a communicator and a window for each process that copies.
void GlobalDefinitions::write_device_windows() {
  const std::vector<DeviceWindows::Window> windows = devices_.windows();
  if (windows.empty()) return;
  OTF2_AttributeValue is_rma_only;
  is_rma_only.uint8 = OTF2_TRUE;
  note(OTF2_GlobalDefWriter_WriteParadigmProperty(
      file_, OTF2_PARADIGM_CUDA, OTF2_PARADIGM_PROPERTY_RMA_ONLY, OTF2_TYPE_UINT8, is_rma_only));
  const std::vector<uint64_t> locations = cuda_locations();
  std::unordered_map<uint64_t, uint64_t> indices;
  for (size_t i = 0; i < locations.size(); ++i) indices.emplace(locations[i], i);
  uint32_t group = groups_.first_device_group;
  if (groups_.nccl_locations == 0) {
    note(OTF2_GlobalDefWriter_WriteGroup(
        file_, group++, string_id("CUDA_LOCATIONS"), OTF2_GROUP_TYPE_COMM_LOCATIONS,
        OTF2_PARADIGM_CUDA, OTF2_GROUP_FLAG_NONE, static_cast<uint32_t>(locations.size()),
        locations.data()));
  }
  for (uint32_t place = 0; place < windows.size(); ++place, ++group) {
    std::vector<uint64_t> members;
    for (const uint64_t location : windows[place].members) members.push_back(indices.at(location));
    const auto comm = static_cast<uint32_t>(model_.communicators.size()) + place;
    const std::string name = "CUDA of " + model_.groups[windows[place].group].name;
    note(OTF2_GlobalDefWriter_WriteGroup(file_, group, string_id(name), OTF2_GROUP_TYPE_COMM_GROUP,
                                         OTF2_PARADIGM_CUDA, OTF2_GROUP_FLAG_NONE,
                                         static_cast<uint32_t>(members.size()), members.data()));
    note(OTF2_GlobalDefWriter_WriteComm(file_, comm, string_id(name), group, OTF2_UNDEFINED_COMM,
                                        OTF2_COMM_FLAG_NONE));
    note(OTF2_GlobalDefWriter_WriteRmaWin(file_, first_device_window(model_, timelines_) + place,
                                          string_id("CUDA_WINDOW"), comm, OTF2_RMA_WIN_FLAG_NONE));
  }
}

/// Members as indices into COMM_LOCATIONS. A member that never told its place (its process died or
/// is not instrumented) is guessed: the lowest rank that is in no place yet, first among the ranks
/// that left no records.
std::vector<uint64_t> GlobalDefinitions::member_indices(
    const GlobalCommunicator& communicator) const {
  std::vector<uint64_t> members(communicator.members.size());
  std::unordered_set<int64_t> used;
  const auto is_unknown = [](int64_t member) { return member < 0; };
  if (std::any_of(communicator.members.begin(), communicator.members.end(), is_unknown))
    used.insert(communicator.members.begin(), communicator.members.end());
  auto guess = guesses_.begin();
  for (size_t place = 0; place < members.size(); ++place) {
    const int64_t member = communicator.members[place];
    if (member >= 0) {
      members[place] = static_cast<uint64_t>(member);
      continue;
    }
    while (guess != guesses_.end() && used.count(int64_t{*guess}) != 0) ++guess;
    if (guess != guesses_.end()) members[place] = *guess++;
  }
  return members;
}

}  // namespace aon::writers::otf2
