// Windows and rank groups of the model: one id for what many processes named.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

/// Larger local ids are damage; the OTF2 writer has the others for itself.
constexpr uint32_t kMaxLocalId = 0x7fffffffu;

class WindowUnifier {
 public:
  explicit WindowUnifier(Model* model) : model_(model) {}

  /// A window whose communicator is not known, or has members of another world, gets no id.
  void add_windows(Group* group) {
    for (const auto& [local, window] : group->process->windows) {
      const auto communicator = group->communicator_map.find(window.definition.communicator_id);
      if (local > kMaxLocalId || communicator == group->communicator_map.end()) continue;
      if (model_->communicators[communicator->second].is_partial()) continue;
      const auto next = static_cast<uint32_t>(model_->windows.size());
      const auto [entry, is_new] =
          windows_.try_emplace({window.definition.identity, communicator->second}, next);
      if (is_new) model_->windows.push_back({"", communicator->second, window.definition.flavour});
      if (!window.name.empty()) model_->windows[entry->second].name = window.name;
      group->window_map[local] = entry->second;
    }
  }

  /// Id 0 is all members of a window. A rank that does not exist makes the group unknown.
  void add_rank_groups(Group* group) {
    for (const auto& [local, told] : group->process->rank_groups) {
      const std::optional<std::vector<uint32_t>> members = members_of(*group, told);
      if (local == 0 || local > kMaxLocalId || !members) continue;
      const auto next = static_cast<uint32_t>(model_->rank_groups.size());
      const auto [entry, is_new] = rank_groups_.try_emplace(*members, next);
      if (is_new) model_->rank_groups.push_back({*members});
      group->rank_group_map[local] = entry->second;
    }
  }

 private:
  /// The places in Model::groups of `ranks` of the world of `group`. Those of the world that has
  /// the ranks of the job are where their numbers say.
  std::optional<std::vector<uint32_t>> members_of(const Group& group,
                                                  const std::vector<uint32_t>& ranks) const {
    const std::vector<int64_t>* world = group.rank ? nullptr : world_of(group);
    if (!group.rank && world == nullptr) return std::nullopt;
    const size_t size = world != nullptr ? world->size() : model_->groups.size();
    std::vector<uint32_t> members;
    for (const uint32_t rank : ranks) {
      if (rank >= size || (world != nullptr && (*world)[rank] < 0)) return std::nullopt;
      members.push_back(world != nullptr ? static_cast<uint32_t>((*world)[rank]) : rank);
    }
    return members;
  }

  const std::vector<int64_t>* world_of(const Group& group) const {
    for (const auto& [local, communicator] : group.process->communicators) {
      const auto entry = group.communicator_map.find(local);
      if (communicator.definition.kind == CommunicatorKind::kWorld &&
          entry != group.communicator_map.end())
        return &model_->communicators[entry->second].members;
    }
    return nullptr;
  }

  Model* model_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> windows_;  ///< by identity and communicator
  std::map<std::vector<uint32_t>, uint32_t> rank_groups_;
};

}  // namespace

void build_windows(JobModel* parts) {
  WindowUnifier unifier(&parts->model);
  for (Group& group : parts->model.groups) {
    if (group.process == nullptr) continue;
    unifier.add_windows(&group);
    unifier.add_rank_groups(&group);
  }
}

}  // namespace aon::writers
