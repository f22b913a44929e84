#include "writers/hang/nccl_hang.h"

#include <algorithm>
#include <set>
#include <utility>

namespace aon::writers {
namespace {

constexpr uint32_t kMaxMembers = 1u << 20;  ///< that are looked at one by one
constexpr uint32_t kUnknown = profile::LocalIds::kNone;

/// This process's rank in a communicator of its own; nullopt: it has no such communicator of NCCL.
std::optional<uint32_t> rank_in(const Group& group, uint32_t local) {
  if (group.process == nullptr) return std::nullopt;
  const auto found = group.process->communicators.find(local);
  if (found == group.process->communicators.end() ||
      found->second.definition.kind != CommunicatorKind::kNccl)
    return std::nullopt;
  return found->second.definition.rank;
}

}  // namespace

void NcclHangFinder::begin(const Model& model, uint64_t now_ns) {
  model_ = &model;
  now_ns_ = now_ns;
  hole_end_ns_.resize(model.groups.size());
  done_ns_.resize(model.groups.size());
}

void NcclHangFinder::begin_location(const Location& location) {
  if (location.group == group_) return;
  end_group();
  group_ = location.group;
  const Group& group = model_->groups[group_];
  communicators_ = profile::LocalIds(group.communicator_map);
  regions_ = profile::LocalIds(group.region_map);
  if (group.process == nullptr) return;
  for (const auto& [local, communicator] : group.process->communicators) {
    const auto rank = rank_in(group, local);
    if (rank) progress_[{communicators_.global(local), *rank}].group = group_;
  }
}

/// Of transfers each pair has numbers of its own.
NcclHangFinder::Kind NcclHangFinder::kind_of(uint32_t region, int32_t peer) const {
  const bool is_transfer = model_->regions[region].role == RegionRole::kPointToPoint;
  return {region, is_transfer ? peer : kNoPeer};
}

void NcclHangFinder::add_pause(uint64_t time_ns) {
  hole_end_ns_[group_] = std::max({hole_end_ns_[group_], time_ns, uint64_t{1}});
}

void NcclHangFinder::add(const Event& event) {
  if (event.kind == EventKind::kLostBegin || event.kind == EventKind::kLostEnd)
    add_pause(event.time_ns);
  if (event.kind != EventKind::kNcclCall) return;
  const NcclOperation& operation = event.nccl();
  const uint32_t communicator = communicators_.global(operation.communicator);
  const uint32_t region = regions_.global(operation.region);
  const auto rank = rank_in(model_->groups[group_], operation.communicator);
  if (communicator == kUnknown || region >= model_->regions.size() || !rank) return;
  Progress& progress = progress_[{communicator, *rank}];
  in_flight_.add(operation);
  note_done(operation);
  // Calls that made no work have no sequence.
  if ((operation.flags & kNcclNoWork) != 0) return;
  note_level(operation, &progress);
  Reached& reached = progress.enqueued[kind_of(region, operation.peer)];
  if (operation.sequence >= reached.count)
    reached = {operation.sequence + 1, operation.call, operation.start_ns, operation.bytes};
}

/// NCCL's kernels of one communicator run one after the other.
void NcclHangFinder::note_done(const NcclOperation& operation) {
  if ((operation.flags & (kNcclGpuTimed | kNcclInFlight)) != kNcclGpuTimed) return;
  uint64_t& launch_ns = done_launch_ns_[operation.communicator];
  launch_ns = std::max(launch_ns, operation.launch_ns);
  done_ns_[group_] = std::max(done_ns_[group_], operation.end_ns);
}

/// The budget may have lowered the level since, or raised it: the newest operation tells.
void NcclHangFinder::note_level(const NcclOperation& operation, Progress* progress) {
  constexpr uint32_t kTold = kNcclInFlight | kNcclGpuTimed | kNcclMissedChannels;
  const bool is_timed = (operation.flags & kTold) != 0;
  if (operation.call < progress->newest_call) return;
  // An operation has two records, of which the first may come last.
  progress->is_timed = is_timed || (progress->is_timed && operation.call == progress->newest_call);
  progress->is_untimed = !progress->is_timed;
  progress->newest_call = operation.call;
}

void NcclHangFinder::end_group() {
  if (group_ == UINT32_MAX) return;
  if (const spool::Process* process = model_->groups[group_].process; process != nullptr) {
    for (const auto& [local, communicator] : process->communicators) {
      const auto rank = rank_in(model_->groups[group_], local);
      if (rank) progress_[{communicators_.global(local), *rank}].gap = in_flight_.last_gap(local);
    }
  }
  for (const NcclOperation& operation : in_flight_.take()) {
    const auto rank = rank_in(model_->groups[group_], operation.communicator);
    // Its end may lie in a hole.
    if (!rank || operation.start_ns <= hole_end_ns_[group_]) continue;
    // It is over if what was launched behind it is: only its end was not told.
    const auto done = done_launch_ns_.find(operation.communicator);
    if (done != done_launch_ns_.end() && operation.launch_ns != 0 &&
        operation.launch_ns < done->second)
      continue;
    const uint32_t communicator = communicators_.global(operation.communicator);
    Progress& progress = progress_[{communicator, *rank}];
    if (progress.oldest && progress.oldest->operation.call <= operation.call) continue;
    progress.oldest = {group_, *rank, communicator, regions_.global(operation.region), operation};
  }
  done_launch_ns_.clear();
}

void NcclHangFinder::save(StateOut* out) {
  const uint32_t group = group_;
  end_group();
  group_ = UINT32_MAX;
  out->put(group);
  if (group == UINT32_MAX) return;
  out->put(std::exchange(hole_end_ns_[group], 0));
  out->put(std::exchange(done_ns_[group], 0));
  // Nobody is a member of an unknown one.
  std::erase_if(progress_, [](const auto& entry) { return entry.first.first == kUnknown; });
  out->put(uint64_t{progress_.size()});
  for (const auto& [member, progress] : progress_) {
    out->put(member);
    out->put(progress.group);
    out->put(progress.enqueued);
    out->put(progress.gap);
    out->put(progress.oldest);
    out->put(progress.newest_call);
    out->put(progress.is_timed);
    out->put(progress.is_untimed);
  }
  progress_.clear();
}

bool NcclHangFinder::is_known(const Progress& progress) const {
  const auto is_region = [&](uint32_t region) { return region < model_->regions.size(); };
  const auto has_region = [&](const auto& entry) { return is_region(entry.first.first); };
  const std::optional<NcclPart>& part = progress.oldest;
  return progress.group < model_->groups.size() &&
         std::all_of(progress.enqueued.begin(), progress.enqueued.end(), has_region) &&
         (!part || (part->group < model_->groups.size() && is_region(part->region) &&
                    part->communicator < model_->communicators.size()));
}

Status NcclHangFinder::load(StateIn* in) {
  uint32_t group = UINT32_MAX;
  if (!in->get(&group) || group == UINT32_MAX || !in->check(group < model_->groups.size()))
    return in->status();
  uint64_t count = 0;
  if (!in->get(&hole_end_ns_[group]) || !in->get(&done_ns_[group]) || !in->get(&count))
    return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    Member member;
    Progress loaded;
    if (!in->get(&member) || !in->get(&loaded.group) || !in->get(&loaded.enqueued) ||
        !in->get(&loaded.gap) || !in->get(&loaded.oldest) || !in->get(&loaded.newest_call) ||
        !in->get(&loaded.is_timed) || !in->get(&loaded.is_untimed) ||
        !in->check(member.first < model_->communicators.size() && is_known(loaded)))
      return in->status();
    add(loaded, &progress_[member]);
  }
  return {};
}

/// Two groups that say they are one member: as if both had told here.
void NcclHangFinder::add(const Progress& loaded, Progress* progress) const {
  progress->group = loaded.group;
  progress->gap = loaded.gap;
  for (const auto& [kind, reached] : loaded.enqueued) {
    Reached& known = progress->enqueued[kind];
    if (reached.count > known.count) known = reached;
  }
  const bool is_older =
      loaded.oldest &&
      (!progress->oldest || loaded.oldest->operation.call < progress->oldest->operation.call);
  if (is_older) progress->oldest = loaded.oldest;
  const bool is_told = loaded.is_timed || loaded.is_untimed;
  if (!is_told || loaded.newest_call < progress->newest_call) return;
  progress->is_timed =
      loaded.is_timed || (progress->is_timed && loaded.newest_call == progress->newest_call);
  progress->is_untimed = !progress->is_timed;
  progress->newest_call = loaded.newest_call;
}

bool NcclHangFinder::is_quiet(uint32_t group) const {
  return std::any_of(model_->stacks.begin(), model_->stacks.end(), [&](const HostStack& stack) {
    return stack.group == group && stack.quiet_ns != 0 && last_ns_[group] <= stack.taken_ns;
  });
}

bool NcclHangFinder::is_stuck(const NcclPart& part) const {
  const NcclOperation& operation = part.operation;
  if ((operation.flags & kNcclAbandoned) != 0)
    return std::max(operation.start_ns, done_ns_[part.group]) + kGivenUpNs <= operation.end_ns;
  return is_quiet(part.group) || operation.end_ns + kOldNs <= now_ns_;
}

std::vector<NcclHang> NcclHangFinder::finish(std::span<const uint64_t> last_ns) {
  end_group();
  last_ns_ = last_ns;
  // By communicator, operation (of a transfer the pair, source first) and sequence.
  std::map<std::tuple<uint32_t, uint32_t, int64_t, uint64_t>, std::vector<NcclPart>> by_operation;
  std::set<uint32_t> untimed;  // communicators
  for (const auto& [member, progress] : progress_) {
    if (progress.is_untimed) untimed.insert(member.first);
    if (!progress.oldest) continue;
    const NcclPart& part = *progress.oldest;
    const Kind kind = kind_of(part.region, part.operation.peer);
    const int64_t pair =
        kind.second == kNoPeer ? -1 : int64_t{kind.second} << 32 | int64_t{part.rank};
    by_operation[{part.communicator, part.region, pair, part.operation.sequence}].push_back(part);
  }
  std::vector<NcclHang> hangs;
  for (auto& [key, parts] : by_operation) {
    if (hangs.size() >= kMaxHangs) break;
    if (std::any_of(parts.begin(), parts.end(), [&](const NcclPart& p) { return is_stuck(p); }))
      hangs.push_back(judge(std::move(parts)));
  }
  for (const NcclHang& hang : hangs) untimed.erase(hang.communicator);
  for (const uint32_t communicator : untimed) find_behind(communicator, &hangs);
  std::sort(hangs.begin(), hangs.end(),
            [](const NcclHang& a, const NcclHang& b) { return a.since_ns < b.since_ns; });
  return hangs;
}

/// Whether the member has surely not come to more operations of `kind` than it told.
bool NcclHangFinder::is_certain(const Progress& progress, const Kind& kind) const {
  const uint64_t hole_end_ns = hole_end_ns_[progress.group];
  const auto reached = progress.enqueued.find(kind);
  if (reached == progress.enqueued.end()) return hole_end_ns == 0 && !progress.gap;
  return reached->second.start_ns > hole_end_ns &&
         (!progress.gap || *progress.gap < reached->second.call);
}

/// Says of one member what it is to the hang.
void NcclHangFinder::judge_member(const Member& member, const Kind& kind, NcclHang* hang) const {
  const auto found = progress_.find(member);
  if (found == progress_.end()) {
    ++hang->unknown_count;
    return;
  }
  const Progress& progress = found->second;
  const auto enqueued = progress.enqueued.find(kind);
  if (enqueued != progress.enqueued.end() && enqueued->second.count > hang->sequence) {
    hang->passed.push_back(progress.group);
    return;
  }
  if (!is_certain(progress, kind)) {
    ++hang->unknown_count;
    return;
  }
  hang->absent.push_back(progress.group);
  const bool is_collective = kind.second == kNoPeer;
  if (progress.oldest && is_collective &&
      kind_of(progress.oldest->region, progress.oldest->operation.peer).second == kNoPeer)
    hang->wrong.push_back(*progress.oldest);
}

NcclHang NcclHangFinder::judge(std::vector<NcclPart> parts) const {
  const NcclPart& first = parts.front();
  NcclHang hang;
  hang.communicator = first.communicator;
  hang.region = first.region;
  hang.sequence = first.operation.sequence;
  for (const NcclPart& part : parts) {
    hang.since_ns = std::min(hang.since_ns, part.operation.start_ns);
    hang.differs |= part.operation.bytes != first.operation.bytes ||
                    part.operation.type != first.operation.type;
  }
  const Kind kind = kind_of(first.region, first.operation.peer);
  if (kind.second != kNoPeer) {
    // The other end calls the other function, and counts alike.
    const bool is_send = model_->regions[first.region].name == "ncclSend";
    const auto other = std::find_if(model_->regions.begin(), model_->regions.end(),
                                    [&](const GlobalRegion& region) {
                                      return region.name == (is_send ? "ncclRecv" : "ncclSend");
                                    });
    const Member peer{first.communicator, static_cast<uint32_t>(kind.second)};
    const auto region = static_cast<uint32_t>(other - model_->regions.begin());
    judge_member(peer, {region, static_cast<int32_t>(first.rank)}, &hang);
  } else {
    const uint32_t size =
        std::min(model_->communicators[first.communicator].rank_count, kMaxMembers);
    size_t next = 0;
    for (uint32_t rank = 0; rank < size; ++rank) {
      if (next < parts.size() && parts[next].rank == rank) {
        ++next;
      } else {
        judge_member({first.communicator, rank}, kind, &hang);
      }
    }
  }
  hang.arrived = std::move(parts);
  return hang;
}

/// What those who have come to an operation have reached of each collective function, by region.
struct NcclHangFinder::Camp {
  std::map<uint32_t, uint64_t> most;
  std::map<uint32_t, uint64_t> behind_it;  ///< by one of them, after that operation
  std::set<uint32_t> uncertain;            ///< of which one of them may have reached more
};

/// All members do the same collectives in the same order, so one that is merely behind has not
/// come to more of any function than those who are ahead. Who has came to another one instead:
/// the newest such one. nullopt: that is not known, or it is merely behind.
std::optional<NcclPart> NcclHangFinder::instead(const Member& member, const Progress& progress,
                                                const Camp& camp) {
  std::optional<NcclPart> part;
  for (const auto& [kind, reached] : progress.enqueued) {
    if (kind.second != kNoPeer || camp.uncertain.count(kind.first) != 0) continue;
    const auto theirs = camp.most.find(kind.first);
    if (theirs != camp.most.end() && theirs->second >= reached.count) continue;
    if (part && part->operation.start_ns > reached.start_ns) continue;
    part.emplace();
    part->group = progress.group;
    part->communicator = member.first;
    part->rank = member.second;
    part->region = kind.first;
    part->operation.start_ns = reached.start_ns;
    part->operation.sequence = reached.count - 1;
    part->operation.bytes = reached.bytes;
  }
  return part;
}

/// Whether the member has come to something that those who are in the operation called behind it.
bool NcclHangFinder::went_on(const Progress& progress, const Camp& camp) {
  for (const auto& [region, count] : camp.behind_it) {
    const auto reached = progress.enqueued.find({region, kNoPeer});
    if (reached != progress.enqueued.end() && reached->second.count >= count) return true;
  }
  return false;
}

void NcclHangFinder::join(const Progress& progress, uint32_t region, Camp* camp) const {
  const uint32_t call = progress.enqueued.at({region, kNoPeer}).call;
  for (const auto& [kind, reached] : progress.enqueued) {
    if (kind.second != kNoPeer) continue;
    uint64_t& most = camp->most[kind.first];
    most = std::max(most, reached.count);
    if (reached.call <= call) continue;
    uint64_t& least = camp->behind_it.try_emplace(kind.first, reached.count).first->second;
    least = std::min(least, reached.count);
  }
  for (const uint32_t other : collectives_) {
    if (!is_certain(progress, {other, kNoPeer})) camp->uncertain.insert(other);
  }
}

/// Who of the members has come to the last operation of a region that any of them has, and who not.
NcclHang NcclHangFinder::behind(Members::const_iterator begin, Members::const_iterator end,
                                uint32_t region, uint64_t count) const {
  NcclHang hang;
  hang.communicator = begin->first.first;
  hang.region = region;
  hang.sequence = count - 1;
  hang.is_enqueued_only = true;
  Camp camp;
  std::vector<Members::const_iterator> absent;
  for (auto it = begin; it != end; ++it) {
    const auto found = it->second.enqueued.find({region, kNoPeer});
    if (found == it->second.enqueued.end() || found->second.count < count) {
      const size_t before = hang.absent.size();
      judge_member(it->first, {region, kNoPeer}, &hang);
      if (hang.absent.size() != before) absent.push_back(it);
      continue;
    }
    join(it->second, region, &camp);
    NcclPart part;
    part.group = it->second.group;
    part.rank = it->first.second;
    part.communicator = hang.communicator;
    part.region = region;
    hang.arrived.push_back(part);
    hang.since_ns = std::min(hang.since_ns, last_ns_[part.group]);
  }
  hang.wrong.clear();
  size_t went_on_count = 0;
  for (const auto& it : absent) {
    if (auto part = instead(it->first, it->second, camp)) {
      hang.wrong.push_back(*part);
    } else if (went_on(it->second, camp)) {
      ++went_on_count;
    }
  }
  hang.is_extra = went_on_count > hang.arrived.size();
  return hang;
}

/// Members that have enqueued fewer operations than others, of which one is quiet, or other ones.
void NcclHangFinder::find_behind(uint32_t communicator, std::vector<NcclHang>* hangs) {
  std::map<uint32_t, uint64_t> most;  // by region
  const auto begin = progress_.lower_bound({communicator, 0});
  const auto end = progress_.lower_bound({communicator + 1, 0});
  collectives_.clear();
  for (auto it = begin; it != end; ++it) {
    for (const auto& [kind, reached] : it->second.enqueued) {
      if (kind.second == kNoPeer) most[kind.first] = std::max(most[kind.first], reached.count);
    }
  }
  for (const auto& [region, count] : most) collectives_.push_back(region);
  std::optional<NcclHang> camp;  // the largest one, where others are in something else
  for (const auto& [region, count] : most) {
    NcclHang hang = behind(begin, end, region, count);
    const bool has_quiet = std::any_of(hang.arrived.begin(), hang.arrived.end(),
                                       [&](const NcclPart& part) { return is_quiet(part.group); });
    if (!has_quiet || hang.absent.empty()) continue;
    if (!hang.wrong.empty()) {
      if (!camp || hang.arrived.size() > camp->arrived.size()) camp = std::move(hang);
    } else if (hangs->size() < kMaxHangs) {
      hangs->push_back(std::move(hang));
    }
  }
  if (camp && hangs->size() < kMaxHangs) hangs->push_back(std::move(*camp));
}

}  // namespace aon::writers
