#include "writers/hang/hang.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "writers/profile/mpi_calls.h"
#include "writers/profile/silent.h"

namespace aon::writers {
namespace {

bool begins_with(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

/// A call that sends a message before it returns.
bool is_send(const GlobalRegion& region) {
  constexpr const char* kNames[] = {"MPI_Send", "MPI_Ssend", "MPI_Bsend", "MPI_Rsend"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const char* name) { return begins_with(region.name, name); });
}

/// Called by all members, in one order, and numbered by what is counted of them.
bool is_numbered(const GlobalRegion& region) {
  switch (region.role) {
    case RegionRole::kBarrier:
    case RegionRole::kOneToAll:
    case RegionRole::kAllToOne:
    case RegionRole::kAllToAll:
      break;
    case RegionRole::kCollectiveOther:
      return region.name == "MPI_Scan" || region.name == "MPI_Exscan" ||
             begins_with(region.name, "MPI_Iscan") || begins_with(region.name, "MPI_Iexscan");
    default:
      return false;
  }
  return !begins_with(region.name, "MPI_Neighbor") && !begins_with(region.name, "MPI_Comm_") &&
         !begins_with(region.name, "MPI_Win_") && !begins_with(region.name, "MPI_File_");
}

}  // namespace

Status HangFinder::begin(const Model& model) {
  model_ = &model;
  nccl_.begin(model, now_ns_ != 0 ? now_ns_ : model.end_ns);
  progress_.resize(model.groups.size());
  report_.last_ns.resize(model.groups.size());
  report_.has_finalized.resize(model.groups.size());
  for (const GlobalRegion& region : model.regions) {
    const bool is_mpi = region.paradigm == Paradigm::kMpi;
    region_calls_.push_back(!is_mpi                             ? Call::kOther
                            : region.name == "MPI_Pcontrol"     ? Call::kPause
                            : region.name == "MPI_Finalize"     ? Call::kFinalize
                            : profile::is_exchange(region.role) ? Call::kExchange
                                                                : Call::kMpi);
  }
  return {};
}

Status HangFinder::begin_location(const Location& location) {
  if (group_ != location.group) {
    group_ = location.group;
    regions_ = profile::LocalIds(model_->groups[group_].region_map);
    communicators_ = profile::LocalIds(model_->groups[group_].communicator_map);
  }
  unsaved_ = group_;
  location_ = location.id;
  is_thread_ = location.type == LocationType::kThread;
  nccl_.begin_location(location);
  has_returned_ = is_open_at_end_ = false;
  depth_ = own_depth_ = 0;
  open_call_.reset();
  if (!is_thread_) return {};
  const auto place = std::pair(location.group, location.slot);
  const auto found = std::lower_bound(model_->open_calls.begin(), model_->open_calls.end(), place,
                                      [](const OpenCall& call, const auto& wanted) {
                                        return std::pair(call.group, call.slot) < wanted;
                                      });
  if (found != model_->open_calls.end() && std::pair(found->group, found->slot) == place)
    open_call_ = static_cast<uint32_t>(found - model_->open_calls.begin());
  return {};
}

Status HangFinder::events(std::span<const Event> events) {
  if (!is_thread_) return {};
  for (const Event& event : events) {
    // What was closed because its thread ended did not happen.
    const bool is_closed_for_it = is_open_at_end_ && event.kind == EventKind::kLeave;
    is_open_at_end_ = event.kind == EventKind::kOpenAtEnd;
    add(event);
    nccl_.add(event);
    if (!is_closed_for_it && !is_open_at_end_)
      report_.last_ns[group_] = std::max(report_.last_ns[group_], event.time_ns);
  }
  return {};
}

void HangFinder::add(const Event& event) {
  switch (event.kind) {
    case EventKind::kEnter:
      enter(event);
      break;
    case EventKind::kLeave:
      if (depth_ == own_depth_) own_depth_ = 0;  // what is open there later is another call
      if (depth_ != 0) --depth_;
      break;
    case EventKind::kOpenAtEnd:
      if (own_depth_ != 0 && depth_ == own_depth_) has_returned_ = false;
      if (const uint32_t region = regions_.global(event.region); region < region_calls_.size())
        progress_[group_].has_open_message |= is_send(model_->regions[region]);
      break;
    case EventKind::kCollectiveEnd:
      count(event);
      break;
    case EventKind::kCollectiveRequest:
      start(event);
      break;
    case EventKind::kLostBegin:
      lose(&progress_[group_]);
      break;
    default:
      add_request(event);
      break;
  }
}

/// A call of MPI that begins when the open one did, or later, is its own record or comes after it.
void HangFinder::enter(const Event& event) {
  ++depth_;
  const uint32_t region = regions_.global(event.region);
  const Call call = region < region_calls_.size() ? region_calls_[region] : Call::kOther;
  if (call == Call::kOther) return;
  Progress& progress = progress_[group_];
  if (!progress.mpi_location) progress.mpi_location = location_;
  if (*progress.mpi_location != location_) {
    const size_t count_before = progress.pending.total_count();
    give_up_requests(&progress);
    count_in_flight(count_before, &progress);
  }
  if (call == Call::kFinalize) report_.has_finalized[group_] = 1;
  const bool is_pause = call == Call::kPause && profile::pauses(event);
  const bool has_failed = call == Call::kExchange && (event.flags & kFailed) != 0;
  if (is_pause) nccl_.add_pause(event.time_ns);
  if (is_pause || has_failed) lose(&progress);
  if (!open_call_ || has_returned_) return;
  const OpenCall& open = model_->open_calls[*open_call_];
  if (event.time_ns < open.start_ns) return;
  has_returned_ = true;
  if (region == open.region) own_depth_ = depth_;
}

/// False: it is no collective of those that have numbers.
bool HangFinder::count(const Event& event) {
  if (event.operation >= CollectiveOperation::kCreateHandle) return false;
  const uint32_t communicator = communicators_.global(event.communicator);
  Count& count = progress_[group_].counts.try_emplace(communicator, Count{location_}).first->second;
  count.is_ambiguous |= count.location != location_;
  ++count.finished;
  return true;
}

void HangFinder::start(const Event& event) {
  Progress& progress = progress_[group_];
  const uint32_t region = regions_.global(event.region);
  const bool is_known = region < model_->regions.size();
  const uint32_t communicator = communicators_.global(event.communicator);
  const bool is_start = is_known && profile::is_start(model_->regions[region]);
  const auto note = [&](const PendingCollective& one) {
    if (progress.has_hole) return;
    const size_t count_before = progress.pending.total_count();
    const bool has_room = progress.pending.collectives().size() < kMaxInFlight;
    if (has_room) progress.pending.start(event.request, one);
    if (!has_room) give_up_requests(&progress);
    count_in_flight(count_before, &progress);
  };
  if (is_start) {
    const bool is_numbered =
        event.bytes != 0 && event.operation < CollectiveOperation::kCreateHandle;
    if (!is_numbered) {
      progress.has_unknown_requests = true;
      return;
    }
    uint32_t& last =
        progress.starts[uint64_t{communicator} << 32 | static_cast<uint32_t>(event.bytes >> 32)];
    last = std::max(last, static_cast<uint32_t>(event.bytes));
    note({communicator, kStartedRegion, 0, event.bytes});
  } else if (count(event) && is_known && is_numbered(model_->regions[region])) {
    const uint64_t number = progress.counts.at(communicator).finished - 1;
    note({communicator, region, number, 0});
  } else {
    progress.has_unknown_requests = true;
  }
}

Status HangFinder::end_location() {
  if (open_call_ && !has_returned_) report_.open_calls.push_back(*open_call_);
  return {};
}

Status HangFinder::save(StateOut* out) {
  out->put(unsaved_);
  if (!unsaved_) return {};
  const Progress progress = std::exchange(progress_[*unsaved_], {});
  partner_count_ -= progress.messages.size();
  in_flight_count_ -= progress.pending.total_count();
  out->put(std::exchange(report_.last_ns[*unsaved_], 0));
  out->put(std::exchange(report_.has_finalized[*unsaved_], 0));
  out->put(progress.has_unknown_requests);
  out->put(progress.has_open_message);
  out->put(progress.is_forgetful);
  out->put(progress.has_hole);
  out->put(progress.counts);
  out->put(progress.starts);
  out->put(progress.messages);
  progress.pending.save(out);
  out->put(std::exchange(report_.open_calls, {}));
  nccl_.save(out);
  unsaved_.reset();
  return {};
}

Status HangFinder::load(StateIn* in) {
  std::optional<uint32_t> group;
  if (!in->get(&group) || !group || !in->check(*group < progress_.size())) return in->status();
  Progress& progress = progress_[*group];
  std::vector<uint32_t> open_calls;
  if (!in->get(&report_.last_ns[*group]) || !in->get(&report_.has_finalized[*group]) ||
      !in->get(&progress.has_unknown_requests) || !in->get(&progress.has_open_message) ||
      !in->get(&progress.is_forgetful) || !in->get(&progress.has_hole) ||
      !in->get(&progress.counts) || !in->get(&progress.starts) || !in->get(&progress.messages) ||
      !progress.pending.load(in) || !in->get(&open_calls))
    return in->status();
  if (progress.messages.size() > kMaxPartners - partner_count_) {
    progress.messages = {};
    progress.is_forgetful = true;
  }
  partner_count_ += progress.messages.size();
  count_in_flight(0, &progress);
  const auto is_known = [&](uint32_t call) { return call < model_->open_calls.size(); };
  if (!in->check(std::all_of(open_calls.begin(), open_calls.end(), is_known))) return in->status();
  report_.open_calls.insert(report_.open_calls.end(), open_calls.begin(), open_calls.end());
  return nccl_.load(in);
}

bool HangFinder::is_collective(const OpenCall& call) const {
  return call.communicator && call.region < model_->regions.size() &&
         is_numbered(model_->regions[call.region]);
}

std::optional<uint64_t> HangFinder::number_of(uint32_t group, uint32_t communicator) const {
  const Progress& progress = progress_[group];
  if (progress.has_hole || profile::is_silent(model_->groups[group])) return std::nullopt;
  const auto found = progress.counts.find(communicator);
  if (found == progress.counts.end()) return 0;
  if (found->second.is_ambiguous) return std::nullopt;
  return found->second.finished;
}

Status HangFinder::finish(const Outcome&) {
  std::map<uint32_t, std::vector<uint32_t>> by_communicator;
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    if (is_collective(call)) by_communicator[*call.communicator].push_back(i);
  }
  for (const auto& [communicator, calls] : by_communicator) find_in(communicator, calls);
  // A message within a call that does not return is not counted.
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    if (call.region < model_->regions.size())
      progress_[call.group].has_open_message |= is_send(model_->regions[call.region]);
  }
  find_waits();
  find_awaited();
  std::set<uint32_t> told;
  for (const uint32_t i : report_.open_calls) told.insert(model_->open_calls[i].group);
  NcclHangReport nccl = nccl_.finish(report_.last_ns, std::move(told));
  report_.nccl = std::move(nccl.hangs);
  report_.nccl_disagreements = std::move(nccl.disagreements);
  report_.nccl_left_out_count = nccl.left_out_count;
  report_.nccl_quiet = std::move(nccl.quiet);
  report_.nccl_quiet_left_out_count = nccl.quiet_left_out_count;
  return {};
}

/// Members may be in different ones of its collectives: each is a hang of its own.
void HangFinder::find_in(uint32_t communicator, std::span<const uint32_t> calls) {
  const std::vector<int64_t>& members = model_->communicators[communicator].members;
  std::map<Which, std::vector<Arrival>> by_number;  // that of those without one is the first
  const std::set<int64_t> member_set(members.begin(), members.end());
  for (const uint32_t i : calls) {
    const OpenCall& call = model_->open_calls[i];
    // Of another world with the same name: who its members are is not known.
    if (member_set.count(int64_t{call.group}) == 0) return;
    by_number[{number_of(call.group, communicator)}].push_back({i, call.region});
  }
  const auto unnumbered = by_number.extract(Which{});
  size_t count = 0;
  for (const auto& [which, arrivals] : by_number) {
    if (++count <= kMaxHangs) add_hang(communicator, which, arrivals);
  }
  if (!unnumbered.empty()) add_hang(communicator, Which{}, unnumbered.mapped());
}

/// Of a member that is not in the call.
HangFinder::Presence HangFinder::presence_of(uint32_t group, uint32_t communicator,
                                             const Which& which) const {
  const Progress& progress = progress_[group];
  if (which.instance != 0) {
    if (progress.has_hole || profile::is_silent(model_->groups[group])) return Presence::kUnknown;
    const uint64_t preparation = uint64_t{communicator} << 32 | which.instance >> 32;
    const auto last = progress.starts.find(preparation);
    const auto wanted = static_cast<uint32_t>(which.instance);
    if (last == progress.starts.end() || last->second < wanted) return Presence::kAbsent;
  } else {
    const auto own = number_of(group, communicator);
    if (!own || !which.number) return Presence::kUnknown;
    if (*own <= *which.number) return Presence::kAbsent;
  }
  const auto& pending = progress.pending.collectives();
  const bool is_pending = std::any_of(pending.begin(), pending.end(), [&](const auto& entry) {
    const PendingCollective& one = entry.second;
    return one.communicator == communicator && one.instance == which.instance &&
           (which.instance != 0 || one.number == *which.number);
  });
  return is_pending ? Presence::kStarted : Presence::kPassed;
}

void HangFinder::add_hang(uint32_t communicator, const Which& which,
                          std::span<const Arrival> arrivals) {
  Hang hang;
  hang.communicator = communicator;
  hang.number = which.number;
  hang.instance = which.instance;
  hang.arrived.assign(arrivals.begin(), arrivals.end());
  const bool is_told = which.number || which.instance != 0;
  std::set<uint32_t> in_call;
  for (const Arrival& arrival : arrivals) {
    const OpenCall& call = model_->open_calls[arrival.call];
    in_call.insert(call.group);
    hang.since_ns = std::min(hang.since_ns, call.start_ns);
    hang.is_mismatch |= is_told && arrival.region != arrivals.front().region;
  }
  std::set<uint32_t> in_any;
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    if (call.communicator == communicator && is_collective(call)) in_any.insert(call.group);
  }
  for (const int64_t member : model_->communicators[communicator].members) {
    const bool is_known = member >= 0 && static_cast<size_t>(member) < model_->groups.size() &&
                          !profile::is_silent(model_->groups[static_cast<size_t>(member)]);
    const auto group = static_cast<uint32_t>(member);
    if (is_known && in_call.count(group) != 0) continue;
    const bool is_cut = is_known && is_end_unknown(*model_, model_->groups[group]);
    const Presence presence =
        is_known ? presence_of(group, communicator, which) : Presence::kUnknown;
    if (presence == Presence::kPassed) {
      hang.passed.push_back(group);
    } else if (presence == Presence::kStarted) {
      hang.started.push_back(group);
    } else if (!is_cut && (presence == Presence::kAbsent ||
                           (is_known && !is_told && in_any.count(group) == 0))) {
      hang.absent.push_back(group);
    } else {
      ++hang.unknown_count;
    }
  }
  const auto order_of = [&](const Arrival& arrival) {
    const OpenCall& call = model_->open_calls[arrival.call];
    return std::tuple(arrival.region, call.region, call.group);
  };
  std::sort(hang.arrived.begin(), hang.arrived.end(),
            [&](const Arrival& a, const Arrival& b) { return order_of(a) < order_of(b); });
  report_.hangs.push_back(std::move(hang));
}

}  // namespace aon::writers
