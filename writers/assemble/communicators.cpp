// Communicators of the model: each member told its own place; the identity joins them.

#include <aon/mpi.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

constexpr uint32_t kNoCommunicator = 0xffffffffu;

/// Places of a topology; 0 where it has none, or more than any job has processes: the extents are
/// untrusted.
size_t place_count(const spool::Cartesian& cartesian) {
  size_t count = cartesian.extents.empty() ? 0 : 1;
  for (const uint32_t extent : cartesian.extents) {
    count *= extent;
    if (count > kMaxWorld) return 0;
  }
  return count;
}

uint32_t first_group_count(const CommunicatorDefinition& definition) {
  uint32_t count = 0;
  memcpy(&count, &definition.reserved[kFirstGroupByte], sizeof count);
  return count;
}

class CommunicatorUnifier {
 public:
  explicit CommunicatorUnifier(Model* model) : model_(model) {}

  /// Identities that some process has seen twice, of communicators that nobody saw made.
  void note_ambiguous(const Group& group) {
    for (const auto& [local, communicator] : group.process->communicators) {
      const CommunicatorDefinition& told = communicator.definition;
      if (unseen_count(told) > 1) ambiguous_.insert(told.identity);
    }
  }

  void add_members(Group* group) {
    for (const auto& [local, communicator] : group->process->communicators) {
      const uint32_t global = id_of(communicator, *group);
      group->communicator_map[local] = global;
      add_member(global, communicator, group->id);
    }
  }

  /// Of those of several worlds, or not to be told apart: who told a place, in order of places.
  void complete_partial() {
    for (const auto& [global, members] : told_places_) {
      GlobalCommunicator& communicator = model_->communicators[global];
      for (const auto& [rank, group] : members) {
        communicator.ranks.push_back(rank);
        communicator.members.push_back(group);
      }
    }
  }

  /// What members told of a topology is taken where it has a place for each of them.
  void check_cartesian() {
    for (GlobalCommunicator& communicator : model_->communicators) {
      if (!communicator.cartesian) continue;
      const size_t places = place_count(*communicator.cartesian);
      if (communicator.kind != CommunicatorKind::kIntra || communicator.is_of_worlds ||
          places == 0 || places != communicator.members.size())
        communicator.cartesian.reset();
    }
  }

  /// A group has a member, and so has the other.
  void check_groups() {
    for (GlobalCommunicator& communicator : model_->communicators) {
      if (communicator.first_group_count >= communicator.members.size())
        communicator.first_group_count = 0;
    }
  }

  /// Sources that no place of the communicator has are none.
  void check_sources() {
    for (GlobalCommunicator& communicator : model_->communicators) {
      for (const std::vector<uint32_t>*& sources : communicator.sources) {
        const auto is_strange = [&](uint32_t rank) { return rank >= communicator.members.size(); };
        if (sources != nullptr && std::any_of(sources->begin(), sources->end(), is_strange))
          sources = nullptr;
      }
    }
  }

  /// Ranks that never told their place in the world have it all the same.
  void complete_worlds() {
    for (GlobalCommunicator& communicator : model_->communicators) {
      if (communicator.kind != CommunicatorKind::kWorld) continue;
      if (!is_the_world(communicator)) continue;
      for (size_t rank = 0; rank < communicator.members.size(); ++rank) {
        communicator.members[rank] = static_cast<int64_t>(rank);
      }
    }
  }

 private:
  static bool is_made(CommunicatorKind kind) {
    return kind == CommunicatorKind::kIntra || kind == CommunicatorKind::kInter;
  }
  static uint8_t unseen_count(const CommunicatorDefinition& told) {
    return is_made(told.kind) ? told.reserved[kUnseenByte] : 0;
  }

  /// The identity of one that nobody saw made is that of all such ones with its members; one that
  /// was made from it is no surer.
  bool is_ambiguous(const CommunicatorDefinition& told, const Group& group) const {
    if (unseen_count(told) == 0) return false;
    if (ambiguous_.count(told.identity) != 0) return true;
    const auto parent = group.communicator_map.find(told.parent_id);
    return parent != group.communicator_map.end() && alone_.count(parent->second) != 0;
  }

  /// Parents have smaller local ids than their children, so they are numbered first.
  uint32_t id_of(const spool::Communicator& communicator, const Group& group) {
    const CommunicatorKind kind = communicator.definition.kind;
    const bool is_self = kind == CommunicatorKind::kSelf;
    const uint32_t next = static_cast<uint32_t>(model_->communicators.size());
    if (is_self && self_ != kNoCommunicator) return self_;
    const bool is_alone = is_ambiguous(communicator.definition, group);
    if (is_alone) {
      alone_.insert(next);  // each member has one of its own
    } else if (!is_self) {
      const auto [entry, is_new] = ids_.try_emplace(communicator.definition.identity, next);
      if (!is_new) return entry->second;
    } else {
      self_ = next;
    }
    GlobalCommunicator& made = model_->communicators.emplace_back();
    made.kind = kind;
    made.is_of_worlds =
        is_alone || (is_made(kind) && communicator.definition.reserved[kOfWorldsByte] != 0);
    if (kind == CommunicatorKind::kWorld) made.name = "MPI_COMM_WORLD";
    if (is_self) made.name = "MPI_COMM_SELF";
    const auto parent = group.communicator_map.find(communicator.definition.parent_id);
    const bool is_root = kind == CommunicatorKind::kWorld || is_self;
    if (!is_root && parent != group.communicator_map.end()) made.parent = parent->second;
    return next;
  }

  void add_member(uint32_t id, const spool::Communicator& local, uint32_t group) {
    GlobalCommunicator* global = &model_->communicators[id];
    if (!local.name.empty()) global->name = local.name;
    if (global->kind == CommunicatorKind::kSelf) return;
    if (global->is_of_worlds) {
      global->rank_count = std::max(global->rank_count, local.definition.size);
      if (local.definition.rank < local.definition.size) {
        told_places_[id].try_emplace(local.definition.rank, group);
      }
      return;
    }
    const bool is_nccl = global->kind == CommunicatorKind::kNccl;  // one process may be many ranks
    const size_t most = is_nccl ? kMaxWorld : model_->groups.size();
    const size_t size = std::min<size_t>(local.definition.size, most);
    global->rank_count = std::max(global->rank_count, static_cast<uint32_t>(size));
    if (global->members.size() < size) global->members.resize(size, -1);
    const size_t rank = local.definition.rank;
    if (local.cartesian) global->cartesian = local.cartesian;
    if (global->kind == CommunicatorKind::kInter)
      global->first_group_count = first_group_count(local.definition);
    if (rank >= global->members.size()) return;
    global->members[rank] = group;
    if (!local.sources || global->kind != CommunicatorKind::kIntra) return;
    if (global->sources.size() <= rank) global->sources.resize(rank + 1);
    global->sources[rank] = &*local.sources;
  }

  bool is_the_world(const GlobalCommunicator& communicator) const {
    for (size_t rank = 0; rank < communicator.members.size(); ++rank) {
      const int64_t member = communicator.members[rank];
      if (member >= 0 && static_cast<size_t>(member) != rank) return false;
    }
    return true;
  }

  Model* model_;
  std::map<uint64_t, uint32_t> ids_;
  std::set<uint64_t> ambiguous_;  ///< identities
  std::set<uint32_t> alone_;
  std::map<uint32_t, std::map<uint32_t, uint32_t>> told_places_;  ///< group by rank
  uint32_t self_ = kNoCommunicator;
};

}  // namespace

void build_communicators(JobModel* parts) {
  CommunicatorUnifier unifier(&parts->model);
  for (const Group& group : parts->model.groups) {
    if (group.process != nullptr) unifier.note_ambiguous(group);
  }
  for (Group& group : parts->model.groups) {
    if (group.process != nullptr) unifier.add_members(&group);
  }
  unifier.complete_partial();
  unifier.complete_worlds();
  unifier.check_groups();
  unifier.check_cartesian();
  unifier.check_sources();
}

}  // namespace aon::writers
