// Windows and rank groups of the model: one id for what many processes named.

#include <algorithm>
#include <map>
#include <string>

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
    for (const auto& [local, members] : group->process->rank_groups) {
      const bool exists = std::all_of(members.begin(), members.end(), [this](uint32_t rank) {
        return rank < model_->groups.size();
      });
      if (local == 0 || local > kMaxLocalId || !exists) continue;
      const auto next = static_cast<uint32_t>(model_->rank_groups.size());
      const auto [entry, is_new] = rank_groups_.try_emplace(members, next);
      if (is_new) model_->rank_groups.push_back({members});
      group->rank_group_map[local] = entry->second;
    }
  }

 private:
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
