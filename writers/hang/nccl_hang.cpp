#include "writers/hang/nccl_hang.h"

#include <algorithm>
#include <set>
#include <utility>

namespace aon::writers {
namespace {

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
  if (model_->regions[region].role == RegionRole::kPointToPoint) return;
  keep(operation.call,
       {{region, operation.peer, operation.type, operation.bytes}, operation.start_ns}, &progress);
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
    out->put(progress.latest);
  }
  progress_.clear();
}

bool NcclHangFinder::is_known(const Progress& progress) const {
  const auto is_region = [&](uint32_t region) { return region < model_->regions.size(); };
  const auto has_region = [&](const auto& entry) { return is_region(entry.first.first); };
  const std::optional<NcclPart>& part = progress.oldest;
  return progress.group < model_->groups.size() &&
         std::all_of(progress.enqueued.begin(), progress.enqueued.end(), has_region) &&
         std::all_of(progress.latest.begin(), progress.latest.end(),
                     [&](const auto& entry) { return is_region(entry.second.shape.region); }) &&
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
        !in->get(&loaded.is_timed) || !in->get(&loaded.is_untimed) || !in->get(&loaded.latest) ||
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
  for (const auto& [call, latest] : loaded.latest) keep(call, latest, progress);
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

NcclHangReport NcclHangFinder::finish(std::span<const uint64_t> last_ns) {
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
  NcclHangReport found;
  std::vector<NcclHang>& hangs = found.hangs;
  for (auto& [key, parts] : by_operation) {
    if (hangs.size() >= kMaxHangs) break;
    if (std::any_of(parts.begin(), parts.end(), [&](const NcclPart& p) { return is_stuck(p); }))
      hangs.push_back(judge(std::move(parts)));
  }
  for (const NcclHang& hang : hangs) untimed.erase(hang.communicator);
  for (const uint32_t communicator : untimed) find_behind(communicator, &hangs);
  std::sort(hangs.begin(), hangs.end(),
            [](const NcclHang& a, const NcclHang& b) { return a.since_ns < b.since_ns; });
  find_disagreements(&found);
  return found;
}

}  // namespace aon::writers
