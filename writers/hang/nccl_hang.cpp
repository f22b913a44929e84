#include "writers/hang/nccl_hang.h"

#include <algorithm>
#include <set>
#include <utility>

namespace aon::writers {
namespace {

constexpr uint32_t kUnknown = profile::LocalIds::kNone;

/// This process's rank in a communicator of its own; nullopt: it has no such communicator of NCCL,
/// or none in which that is a rank.
std::optional<uint32_t> rank_in(const Group& group, uint32_t local) {
  if (group.process == nullptr) return std::nullopt;
  const auto found = group.process->communicators.find(local);
  if (found == group.process->communicators.end() ||
      found->second.definition.kind != CommunicatorKind::kNccl)
    return std::nullopt;
  const CommunicatorDefinition& told = found->second.definition;
  if (told.size != 0 && told.rank >= told.size) return std::nullopt;
  return told.rank;
}

uint32_t region_named(const Model& model, const char* name) {
  const auto found = std::find_if(model.regions.begin(), model.regions.end(),
                                  [&](const GlobalRegion& region) { return region.name == name; });
  return static_cast<uint32_t>(found - model.regions.begin());
}

}  // namespace

bool is_end_unknown(const Model& model, const Group& group) {
  return model.job != nullptr && model.job->has_damaged_definitions && group.process != nullptr &&
         !group.process->exit;
}

bool has_ended_well(const Group& group) {
  return group.process != nullptr && group.process->exit && group.process->exit->signal == 0 &&
         group.process->exit->exit_code == 0;
}

std::optional<double> about_end_ns(const Model& model, const Group& group) {
  if (group.process == nullptr || !group.process->exit) return std::nullopt;
  const uint64_t ticks = group.process->exit->end_ticks;
  const std::vector<clock::NodeClock>& nodes = model.cluster.nodes;
  const int64_t offset_ns = group.node < nodes.size() ? nodes[group.node].offset_ns : 0;
  const auto to_reference = [&](double own_ns) { return own_ns + static_cast<double>(offset_ns); };
  const std::vector<ClockDefinition>& told = model.job->nodes[group.node].clock;
  if (told.empty()) return to_reference(static_cast<double>(ticks));
  const auto between = [](uint64_t from, uint64_t to) {
    return static_cast<double>(static_cast<int64_t>(to - from));
  };
  const ClockDefinition& first = told.front();
  const ClockDefinition& last = told.back();
  // REALTIME may be set.
  const double ns_per_tick = last.ticks == first.ticks
                                 ? 1
                                 : between(first.monotonic_raw_ns, last.monotonic_raw_ns) /
                                       between(first.ticks, last.ticks);
  return to_reference(static_cast<double>(first.realtime_ns) +
                      between(first.ticks, ticks) * ns_per_tick);
}

void NcclHangFinder::begin(const Model& model, uint64_t now_ns) {
  model_ = &model;
  now_ns_ = now_ns;
  hole_end_ns_.resize(model.groups.size());
  for (const Group& group : model.groups) {
    if (is_end_unknown(model, group)) hole_end_ns_[group.id] = UINT64_MAX;
  }
  done_ns_.resize(model.groups.size());
  send_ = region_named(model, "ncclSend");
  receive_ = region_named(model, "ncclRecv");
}

void NcclHangFinder::begin_location(const Location& location) {
  slot_ = location.slot;
  if (location.group == group_) return;
  end_group();
  group_ = location.group;
  const Group& group = model_->groups[group_];
  communicators_ = profile::LocalIds(group.communicator_map);
  regions_ = profile::LocalIds(group.region_map);
  if (group.process == nullptr) return;
  for (const auto& [local, communicator] : group.process->communicators) {
    const auto rank = rank_in(group, local);
    if (rank) claim(group_, &progress_[{communicators_.global(local), *rank}]);
  }
}

void NcclHangFinder::claim(uint32_t group, Progress* progress) {
  progress->is_disputed |= progress->group != UINT32_MAX && progress->group != group;
  progress->group = group;
}

/// How far a member has come in operations of `kind`; null: no room to note it.
NcclHangFinder::Reached* NcclHangFinder::reached_of(const Kind& kind, Progress* progress) {
  const auto found = progress->enqueued.find(kind);
  if (found != progress->enqueued.end()) return &found->second;
  if (kind.second != kNoPeer && ++transfer_kind_count_ > kMaxTransferKinds) {
    --transfer_kind_count_;
    progress->is_forgetful = true;
    return nullptr;
  }
  return &progress->enqueued[kind];
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
  in_flight_.add(operation, slot_);
  note_done(operation);
  progress.first_call = std::min(progress.first_call, operation.call);
  // Calls that made no work have no sequence; what a graph does for them later is not always told.
  const bool is_transfer = model_->regions[region].role == RegionRole::kPointToPoint;
  constexpr uint32_t kUncounted = kNcclNoWork | kNcclUncounted;
  progress.is_forgetful |= is_transfer && (operation.flags & kUncounted) != 0;
  graphs_.add(communicator, *rank, model_->regions[region].role, operation.flags);
  if (operation.call >= progress.newest.call)
    progress.newest = {operation.start_ns, operation.call, operation.flags};
  if ((operation.flags & kNcclNoWork) != 0 || operation.sequence > kMaxSequence) return;
  note_level(operation, &progress);
  if ((operation.flags & kNcclUncounted) != 0) return;
  Reached* reached = reached_of(kind_of(region, operation.peer), &progress);
  if (reached != nullptr) note_reached(operation, reached);
  if (is_transfer) return;
  keep(operation.call,
       {{region, operation.peer, operation.type, operation.bytes}, operation.start_ns}, &progress);
}

void NcclHangFinder::note_reached(const NcclOperation& operation, Reached* reached) const {
  const uint8_t is_copied = (operation.flags & kNcclCopyEngines) != 0 ? 1 : 0;
  if (reached->count != 0 && reached->is_copied != is_copied) {
    reached->doubts |= kSomeCopied;
  } else if (operation.sequence + 1 == reached->count && operation.call != reached->call) {
    reached->doubts |= kRepeats;
  }
  reached->is_copied = is_copied;
  if (operation.sequence < reached->count) return;
  reached->count = operation.sequence + 1;
  reached->call = operation.call;
  reached->start_ns = operation.start_ns;
  reached->bytes = operation.bytes;
  reached->slot = slot_;
}

void NcclHangFinder::note_done(const NcclOperation& operation) {
  if (!ended_.add(operation)) return;
  done_ns_[group_] = std::max(done_ns_[group_], operation.end_ns);
}

/// The budget may have lowered the level since, or raised it: the newest operation tells.
void NcclHangFinder::note_level(const NcclOperation& operation, Progress* progress) const {
  constexpr uint32_t kTold = kNcclInFlight | kNcclGpuTimed | kNcclMissedChannels | kNcclOverwritten;
  const bool is_timed = (operation.flags & kTold) != 0;
  if (operation.call < progress->newest_call) return;
  // An operation has two records, of which the first may come last.
  progress->is_timed = is_timed || (progress->is_timed && operation.call == progress->newest_call);
  progress->is_untimed = !progress->is_timed;
  progress->newest_call = operation.call;
  // The other record of a timed one is NCCL's thread's, or of whoever gave it up.
  const bool is_callers = (operation.flags & kNcclInFlight) != 0 || !is_timed;
  if (is_callers && (operation.flags & kNcclAbandoned) == 0) progress->slot = slot_;
}

void NcclHangFinder::note_in_flight(const nccl::InFlight::Enqueued& operation, uint32_t rank) {
  const uint32_t communicator = communicators_.global(operation.communicator);
  const uint32_t region = regions_.global(operation.region);
  Progress& progress = progress_[{communicator, rank}];
  const auto reached = progress.enqueued.find(kind_of(region, operation.peer));
  if (reached != progress.enqueued.end() && (operation.flags & kNcclUncounted) == 0) {
    uint64_t& from = reached->second.in_flight_from;
    from = std::min(from, operation.sequence);
  }
  if (progress.oldest && progress.oldest->operation.call <= operation.call) return;
  progress.oldest = {group_, rank, communicator, region, operation.slot, operation};
}

void NcclHangFinder::end_group() {
  if (group_ == UINT32_MAX) return;
  if (const spool::Process* process = model_->groups[group_].process; process != nullptr) {
    for (const auto& [local, communicator] : process->communicators) {
      const auto rank = rank_in(model_->groups[group_], local);
      if (rank) progress_[{communicators_.global(local), *rank}].gap = in_flight_.last_gap(local);
    }
  }
  for (const nccl::InFlight::Enqueued& operation : in_flight_.take()) {
    const auto rank = rank_in(model_->groups[group_], operation.communicator);
    // Its end may lie in a hole.
    if (!rank || operation.start_ns <= hole_end_ns_[group_] || ended_.is_over(operation)) continue;
    note_in_flight(operation, *rank);
  }
  ended_.clear();
}

void NcclHangFinder::save(StateOut* out) {
  const uint32_t group = group_;
  end_group();
  group_ = UINT32_MAX;
  out->put(group);
  if (group == UINT32_MAX) return;
  out->put(std::exchange(hole_end_ns_[group], 0));
  out->put(std::exchange(done_ns_[group], 0));
  graphs_.save(out);
  // Nobody is a member of an unknown one.
  std::erase_if(progress_, [](const auto& entry) { return entry.first.first == kUnknown; });
  out->put(uint64_t{progress_.size()});
  for (const auto& [member, progress] : progress_) {
    out->put(member);
    out->put(progress.group);
    out->put(progress.is_disputed);
    out->put(progress.is_forgetful);
    out->put(progress.enqueued);
    out->put(progress.gap);
    out->put(progress.first_call);
    out->put(progress.oldest);
    out->put(progress.slot);
    out->put(progress.newest_call);
    out->put(progress.is_timed);
    out->put(progress.is_untimed);
    out->put(progress.latest);
    out->put(progress.newest);
  }
  progress_.clear();
  transfer_kind_count_ = 0;
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
  if (!in->get(&hole_end_ns_[group]) || !in->get(&done_ns_[group])) return in->status();
  if (Status status = graphs_.load(*model_, in); !status) return status;
  if (!in->get(&count)) return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    Member member;
    Progress loaded;
    if (!in->get(&member) || !in->get(&loaded.group) || !in->get(&loaded.is_disputed) ||
        !in->get(&loaded.is_forgetful) || !in->get(&loaded.enqueued) || !in->get(&loaded.gap) ||
        !in->get(&loaded.first_call) || !in->get(&loaded.oldest) || !in->get(&loaded.slot) ||
        !in->get(&loaded.newest_call) || !in->get(&loaded.is_timed) ||
        !in->get(&loaded.is_untimed) || !in->get(&loaded.latest) || !in->get(&loaded.newest) ||
        !in->check(member.first < model_->communicators.size() && is_known(loaded)))
      return in->status();
    add(loaded, &progress_[member]);
  }
  return {};
}

/// Two groups that say they are one member: as if both had told here.
void NcclHangFinder::add(const Progress& loaded, Progress* progress) {
  claim(loaded.group, progress);
  progress->is_disputed |= loaded.is_disputed;
  progress->is_forgetful |= loaded.is_forgetful;
  progress->gap = loaded.gap;
  progress->first_call = std::min(progress->first_call, loaded.first_call);
  for (const auto& [kind, reached] : loaded.enqueued) {
    Reached* known = reached_of(kind, progress);
    if (known == nullptr) continue;
    const uint8_t doubts = known->doubts | reached.doubts;
    const uint64_t in_flight_from = std::min(known->in_flight_from, reached.in_flight_from);
    if (reached.count > known->count) *known = reached;
    known->doubts = doubts;
    known->in_flight_from = in_flight_from;
  }
  for (const auto& [call, latest] : loaded.latest) keep(call, latest, progress);
  if (loaded.newest.call >= progress->newest.call) progress->newest = loaded.newest;
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
  progress->slot = loaded.slot;
}

void NcclHangFinder::note_quiet() {
  is_quiet_.assign(model_->groups.size(), false);
  for (const HostStack& stack : model_->stacks) {
    if (stack.quiet_ns != 0 && last_ns_[stack.group] <= stack.taken_ns)
      is_quiet_[stack.group] = true;
  }
}

/// What was captured may be known of some members only: then nobody knows whether they count alike.
void NcclHangFinder::note_unlike() {
  std::set<uint32_t> unlike = graphs_.unlike();
  const std::set<uint32_t> mixed = graphs_.mixed();
  for (const auto& [member, progress] : progress_) {
    const bool has_first = progress.first_call == 0 || progress.first_call == UINT64_MAX;
    const bool is_whole = has_first && !progress.gap && progress.group < hole_end_ns_.size() &&
                          hole_end_ns_[progress.group] == 0;
    const bool has_repeats =
        std::any_of(progress.enqueued.begin(), progress.enqueued.end(),
                    [](const auto& entry) { return (entry.second.doubts & kRepeats) != 0; });
    if (has_repeats || (!is_whole && mixed.count(member.first) != 0)) unlike.insert(member.first);
  }
  for (auto& [member, progress] : progress_) progress.is_unlike = unlike.count(member.first) != 0;
}

bool NcclHangFinder::is_stuck(const NcclPart& part) const {
  const NcclOperation& operation = part.operation;
  const auto is_since = [](uint64_t from_ns, uint64_t to_ns, uint64_t least_ns) {
    return to_ns >= from_ns && to_ns - from_ns >= least_ns;
  };
  if ((operation.flags & kNcclAbandoned) != 0)
    return is_since(std::max(operation.start_ns, done_ns_[part.group]), operation.end_ns,
                    kGivenUpNs);
  const Group& group = model_->groups[part.group];
  if (has_ended_well(group)) return false;
  // Of a process that has ended nothing gets older.
  const auto age_ns = [&](double to_ns) { return to_ns - static_cast<double>(operation.end_ns); };
  const auto ended_ns = about_end_ns(*model_, group);
  const bool ended_before = ended_ns && age_ns(*ended_ns) < static_cast<double>(kOldNs);
  return is_quiet(part.group) || (!ended_before && is_since(operation.end_ns, now_ns_, kOldNs));
}

NcclHangReport NcclHangFinder::finish(std::span<const uint64_t> last_ns, std::set<uint32_t> told) {
  end_group();
  last_ns_ = last_ns;
  note_quiet();
  note_unlike();
  // By communicator, operation (of a transfer the pair, source first) and sequence.
  std::map<std::tuple<uint32_t, uint32_t, int64_t, uint64_t>, std::vector<NcclPart>> by_operation;
  std::set<uint32_t> untimed;  // communicators
  std::set<uint32_t> quiet;    // of which a member is quiet
  for (const auto& [member, progress] : progress_) {
    if (progress.is_untimed) untimed.insert(member.first);
    if (is_quiet(progress.group)) quiet.insert(member.first);
    if (!progress.oldest) continue;
    const NcclPart& part = *progress.oldest;
    const Kind kind = kind_of(part.region, part.operation.peer);
    const int64_t pair =
        kind.second == kNoPeer ? -1 : int64_t{kind.second} << 32 | int64_t{part.rank};
    by_operation[{part.communicator, part.region, pair, part.operation.sequence}].push_back(part);
  }
  std::vector<std::vector<NcclPart>> stuck;
  for (auto& [key, parts] : by_operation) {
    if (std::any_of(parts.begin(), parts.end(), [&](const NcclPart& p) { return is_stuck(p); }))
      stuck.push_back(std::move(parts));
  }
  NcclHangReport found;
  found.hangs = judge_oldest(std::move(stuck), &found.left_out_count);
  for (const NcclHang& hang : found.hangs) untimed.erase(hang.communicator);
  for (const uint32_t communicator : untimed) {
    if (quiet.count(communicator) == 0) continue;
    find_behind(communicator, &found);
    find_lone_ends(communicator, &found);
  }
  std::stable_sort(found.hangs.begin(), found.hangs.end(),
                   [](const NcclHang& a, const NcclHang& b) { return a.since_ns < b.since_ns; });
  find_disagreements(quiet, &found);
  find_quiet(std::move(told), &found);
  return found;
}

/// The others are counted.
std::vector<NcclHang> NcclHangFinder::judge_oldest(std::vector<std::vector<NcclPart>> stuck,
                                                   uint64_t* left_out_count) const {
  const auto since_ns = [](const std::vector<NcclPart>& parts) {
    uint64_t first_ns = UINT64_MAX;
    for (const NcclPart& part : parts) first_ns = std::min(first_ns, part.operation.start_ns);
    return first_ns;
  };
  std::stable_sort(stuck.begin(), stuck.end(),
                   [&](const auto& a, const auto& b) { return since_ns(a) < since_ns(b); });
  if (stuck.size() > kMaxHangs) {
    *left_out_count += stuck.size() - kMaxHangs;
    stuck.resize(kMaxHangs);
  }
  std::vector<NcclHang> hangs;
  for (std::vector<NcclPart>& parts : stuck) hangs.push_back(judge(std::move(parts)));
  return hangs;
}

void NcclHangFinder::keep_hang(NcclHang hang, NcclHangReport* found) {
  if (found->hangs.size() < kMaxHangs) {
    found->hangs.push_back(std::move(hang));
  } else {
    ++found->left_out_count;
  }
}

}  // namespace aon::writers
