// Processes that record nothing and of which nothing else is told, without times on the GPU: the
// newest operation of NCCL that each has enqueued. It may wait for that, or be done with it.

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {

/// By process, of those that are quiet and not in `told`. Of one whose newest operation has a time
/// on the GPU it is known whether that has ended. One whose newest call is of a graph may be done
/// with all of them: what graphs launch again is told to some only, or to none.
std::map<uint32_t, NcclPart> NcclHangFinder::newest_of_quiet(const std::set<uint32_t>& told) const {
  std::map<uint32_t, NcclPart> newest;
  std::set<uint32_t> timed;
  std::map<uint32_t, Newest> newest_call;
  for (const auto& [member, progress] : progress_) {
    const uint32_t group = progress.group;
    if (progress.is_disputed || told.count(group) != 0 || !is_quiet(group) ||
        has_ended_well(model_->groups[group]))
      continue;
    Newest& call = newest_call.try_emplace(group, progress.newest).first->second;
    if (progress.newest.start_ns > call.start_ns) call = progress.newest;
    for (const auto& [kind, reached] : progress.enqueued) {
      const bool is_to_itself = kind.second == static_cast<int32_t>(member.second);
      const auto known = newest.find(group);
      const bool is_older =
          known != newest.end() && known->second.operation.start_ns >= reached.start_ns;
      if (is_to_itself || reached.count == 0 || is_older) continue;
      NcclPart& part = newest[group];
      part = {group, member.second, member.first, kind.first, reached.slot, {}};
      part.operation.start_ns = reached.start_ns;
      part.operation.sequence = reached.count - 1;
      part.operation.peer = kind.second;
      if (progress.is_untimed) {
        timed.erase(group);
      } else {
        timed.insert(group);
      }
    }
  }
  for (const uint32_t group : timed) newest.erase(group);
  for (const auto& [group, call] : newest_call) {
    if ((call.flags & (kNcclGraphCaptured | kNcclUncounted)) != 0) newest.erase(group);
  }
  return newest;
}

/// What the members are that are not among those that are quiet. Told with these is who has
/// enqueued it, too, and ended otherwise than well or is of one process with one of them.
void NcclHangFinder::judge_others(NcclHang* hang) const {
  const NcclPart first = hang->arrived.front();
  const Kind kind = kind_of(first.region, first.operation.peer);
  if (kind.second != kNoPeer) {
    judge_member({hang->communicator, static_cast<uint32_t>(kind.second)},
                 other_end(kind, first.rank), hang);
    return;
  }
  std::set<uint32_t> ranks;
  std::set<uint32_t> groups;
  for (const NcclPart& part : hang->arrived) {
    ranks.insert(part.rank);
    groups.insert(part.group);
  }
  for (uint32_t rank = 0; rank < member_count(hang->communicator); ++rank) {
    if (ranks.count(rank) == 0) judge_member({hang->communicator, rank}, kind, hang);
  }
  std::erase_if(hang->passed, [&](const NcclMember& member) {
    const Group& group = model_->groups[member.group];
    const bool has_exit = group.process != nullptr && group.process->exit;
    const bool has_failed = has_exit && !has_ended_well(group);
    if (!has_failed && groups.count(member.group) == 0) return false;
    NcclPart& part = hang->arrived.emplace_back(first);
    part.group = member.group;
    part.rank = member.rank;
    part.slot = member.slot;
    return true;
  });
}

/// Nobody is accused: those who are behind the same operation are told together.
void NcclHangFinder::find_quiet(std::set<uint32_t> told, NcclHangReport* found) const {
  const auto note = [&](const auto& members) {
    for (const auto& member : members) told.insert(member.group);
  };
  for (const NcclHang& hang : found->hangs) {
    note(hang.arrived);
    note(hang.absent);
    note(hang.called);
    note(hang.passed);
  }
  for (const NcclDisagreement& one : found->disagreements) {
    for (const auto& camp : one.camps) note(camp.members);
  }
  // By communicator, region, pair of a transfer and sequence.
  std::map<std::tuple<uint32_t, uint32_t, int64_t, uint64_t>, NcclHang> by_operation;
  for (const auto& [group, part] : newest_of_quiet(told)) {
    const Kind kind = kind_of(part.region, part.operation.peer);
    const int64_t pair =
        kind.second == kNoPeer ? -1 : int64_t{kind.second} << 32 | int64_t{part.rank};
    NcclHang& hang = by_operation[{part.communicator, part.region, pair, part.operation.sequence}];
    if (hang.arrived.empty()) hang.since_ns = 0;
    hang.communicator = part.communicator;
    hang.region = part.region;
    hang.sequence = part.operation.sequence;
    hang.is_enqueued_only = true;
    hang.since_ns = std::max(hang.since_ns, last_ns_[group]);
    hang.arrived.push_back(part);
  }
  for (auto& [key, hang] : by_operation) found->quiet.push_back(std::move(hang));
  std::stable_sort(
      found->quiet.begin(), found->quiet.end(),
      [](const NcclHang& a, const NcclHang& b) { return a.arrived.size() > b.arrived.size(); });
  if (found->quiet.size() > kMaxHangs) {
    found->quiet_left_out_count = found->quiet.size() - kMaxHangs;
    found->quiet.resize(kMaxHangs);
  }
  for (NcclHang& hang : found->quiet) judge_others(&hang);
}

}  // namespace aon::writers
