// What a process waits for in a call that waits for requests: the collective that somebody has not
// started, or whoever has sent fewer messages than it has received and waits for.

#include <algorithm>
#include <set>

#include "writers/hang/hang.h"
#include "writers/profile/silent.h"

namespace aon::writers {

std::optional<uint32_t> rank_member(const Model& model, uint32_t communicator, int32_t peer) {
  if (communicator >= model.communicators.size() || peer < 0) return std::nullopt;
  const GlobalCommunicator& among = model.communicators[communicator];
  const auto rank = static_cast<size_t>(peer);
  const bool is_mapped = among.kind != CommunicatorKind::kInter &&
                         among.kind != CommunicatorKind::kNccl && !among.is_of_worlds &&
                         rank < among.members.size();
  if (!is_mapped) return std::nullopt;
  const int64_t member = among.members[rank];
  if (member < 0 || static_cast<size_t>(member) >= model.groups.size()) return std::nullopt;
  const auto group = static_cast<uint32_t>(member);
  return model.groups[group].rank ? std::optional(group) : std::nullopt;
}

/// Null: no room to count them.
HangFinder::MessageCount* HangFinder::messages_with(const Event& event) {
  Progress& progress = progress_[group_];
  const uint64_t communicator = communicators_.global(event.communicator);
  const uint64_t key = communicator << 32 | static_cast<uint32_t>(event.peer);
  const auto found = progress.messages.find(key);
  if (found != progress.messages.end()) return &found->second;
  if (partner_count_ >= kMaxPartners) {
    progress.is_forgetful = true;
    return nullptr;
  }
  ++partner_count_;
  return &progress.messages[key];
}

void HangFinder::add_request(const Event& event) {
  Progress& progress = progress_[group_];
  if (progress.has_hole) return;
  const size_t count_before = progress.pending.total_count();
  note_request(event, &progress);
  if (progress.has_unknown_requests || progress.pending.count() > kMaxInFlight)
    give_up_requests(&progress);
  count_in_flight(count_before, &progress);
}

void HangFinder::note_request(const Event& event, Progress* its) {
  Progress& progress = *its;
  switch (event.kind) {
    case EventKind::kSend:
    case EventKind::kSendRequest:
      if (MessageCount* messages = messages_with(event)) ++messages->sent;
      if (event.kind == EventKind::kSendRequest) progress.pending.start_send(event.request);
      break;
    case EventKind::kReceive:
    case EventKind::kReceiveComplete:
      if (MessageCount* messages = messages_with(event)) ++messages->received;
      if (event.kind == EventKind::kReceiveComplete) progress.pending.complete(event.request);
      break;
    case EventKind::kReceiveRequest:
      progress.pending.start(event.request,
                             PendingMessage{communicators_.global(event.communicator), event.peer});
      break;
    case EventKind::kSendComplete:
    case EventKind::kRequestCancelled:
    case EventKind::kCollectiveComplete:
      progress.pending.complete(event.request);
      break;
    case EventKind::kIoIssued:
      progress.pending.start_io(event.request);
      break;
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      progress.pending.complete_io(event.request);
      break;
    case EventKind::kRmaTransfer:
      progress.has_unknown_requests = true;
      break;
    default:
      break;
  }
}

/// `before`: what it had of the requests in flight of all processes.
void HangFinder::count_in_flight(size_t before, Progress* progress) {
  in_flight_count_ += progress->pending.total_count() - before;
  if (in_flight_count_ > kMaxInFlightOfAll) lose(progress);
}

/// What is known of its requests and messages is not all there was: none of it is used.
void HangFinder::lose(Progress* progress) {
  progress->has_hole = true;
  in_flight_count_ -= progress->pending.total_count();
  partner_count_ -= progress->messages.size();
  progress->pending.forget_all();
  progress->messages = {};
}

/// None of the process is judged: what another thread completes would stay in flight for good.
void HangFinder::give_up_requests(Progress* progress) {
  progress->has_unknown_requests = true;
  if (progress->pending.count() != 0) progress->pending.forget();
}

/// Whether it waits for requests, and all that are in flight are known.
bool HangFinder::may_be_judged(const OpenCall& call) const {
  const Progress& progress = progress_[call.group];
  if (progress.has_hole || progress.has_unknown_requests || progress.pending.has_io()) return false;
  if (is_end_unknown(*model_, model_->groups[call.group])) return false;
  if (call.region >= model_->regions.size()) return false;
  const std::string& name = model_->regions[call.region].name;
  return name == "MPI_Wait" || name == "MPI_Waitall";
}

/// Whether a member is known not to have started it.
bool HangFinder::is_behind(const PendingCollective& collective, Least* least) const {
  if (collective.communicator >= model_->communicators.size()) return false;
  const auto for_members = [&](auto visit) {
    for (const int64_t member : model_->communicators[collective.communicator].members) {
      if (member < 0 || static_cast<size_t>(member) >= progress_.size()) continue;
      const auto group = static_cast<uint32_t>(member);
      const Group& its = model_->groups[group];
      const bool is_whole = !progress_[group].has_hole && !is_end_unknown(*model_, its);
      if (is_whole && !profile::is_silent(its)) visit(group);
    }
  };
  if (collective.instance == 0) {
    const auto [found, is_new] = least->numbers.try_emplace(collective.communicator, UINT64_MAX);
    if (is_new) {
      for_members([&, number = &found->second](uint32_t group) {
        const auto own = number_of(group, collective.communicator);
        if (own) *number = std::min(*number, *own);
      });
    }
    return found->second <= collective.number;
  }
  const uint64_t key = uint64_t{collective.communicator} << 32 | collective.instance >> 32;
  const auto [found, is_new] = least->starts.try_emplace(key, UINT32_MAX);
  if (is_new) {
    for_members([&, number = &found->second](uint32_t group) {
      const auto own = progress_[group].starts.find(key);
      *number = std::min(*number, own == progress_[group].starts.end() ? 0 : own->second);
    });
  }
  return found->second < static_cast<uint32_t>(collective.instance);
}

/// The one that somebody has not started; of several, in different communicators, it is not known
/// which one the call waits for.
std::optional<PendingCollective> HangFinder::awaited_collective(const OpenCall& call,
                                                                Least* least) const {
  const PendingRequests& pending = progress_[call.group].pending;
  if (!may_be_judged(call) || pending.has_messages()) return std::nullopt;
  const bool is_for_all = model_->regions[call.region].name == "MPI_Waitall";
  std::optional<PendingCollective> first;
  for (const auto& [request, one] : pending.collectives()) {
    if (is_for_all && pending.is_standing(one)) continue;
    if (one.instance == 0 && !number_of(call.group, one.communicator)) return std::nullopt;
    if (!is_behind(one, least)) continue;
    if (first &&
        (one.communicator != first->communicator || one.instance != 0 || first->instance != 0))
      return std::nullopt;
    if (!first || one.number < first->number) first = one;
  }
  return first;
}

/// Those in which the members that wait for requests are in different calls: one of them is wrong.
void HangFinder::find_mismatches(std::map<Collective, std::vector<Arrival>>* waiting) const {
  std::map<Collective, std::vector<Arrival>> started;
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    if (!may_be_judged(call)) continue;
    for (const auto& [request, one] : progress_[call.group].pending.collectives()) {
      if (one.instance == 0 && one.communicator < model_->communicators.size() &&
          number_of(call.group, one.communicator))
        started[{one.communicator, {one.number}}].push_back({i, one.region});
    }
  }
  for (auto& entry : started) {
    std::vector<Arrival>& arrivals = entry.second;
    const bool is_mismatch = std::any_of(arrivals.begin(), arrivals.end(), [&](const auto& one) {
      return one.region != arrivals.front().region;
    });
    if (is_mismatch) (*waiting)[entry.first] = std::move(arrivals);
  }
}

void HangFinder::find_waits() {
  std::map<Collective, std::vector<Arrival>> waiting;
  Least least;
  for (const uint32_t i : report_.open_calls) {
    const OpenCall& call = model_->open_calls[i];
    const auto one = awaited_collective(call, &least);
    if (!one) continue;
    const Which which{one->instance == 0 ? std::optional(one->number) : std::nullopt,
                      one->instance};
    waiting[{one->communicator, which}].push_back({i, one->region});
  }
  find_mismatches(&waiting);
  std::set<uint32_t> told;
  for (const Hang& hang : report_.hangs) told.insert(hang.communicator);
  for (auto& [key, arrivals] : waiting) {
    const auto& [communicator, which] = key;
    // Of another world with the same name: who its members are is not known.
    const Ranks& ranks = ranks_in(communicator);
    std::erase_if(arrivals, [&](const Arrival& arrival) {
      return ranks.count(model_->open_calls[arrival.call].group) == 0;
    });
    if (!arrivals.empty() && told.insert(communicator).second)
      add_hang(communicator, which, arrivals);
  }
}

const HangFinder::Ranks& HangFinder::ranks_in(uint32_t communicator) {
  const auto [found, is_new] = ranks_.try_emplace(communicator);
  if (!is_new) return found->second;
  const auto& members = model_->communicators[communicator].members;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank] >= 0)
      found->second.emplace(static_cast<uint32_t>(members[rank]), static_cast<uint32_t>(rank));
  }
  return found->second;
}

/// The rank that `message` is to come from, if it has sent fewer messages than `group` has received
/// from it and `count`. Those of one communicator are taken together: tags can only hide a debt.
std::optional<uint32_t> HangFinder::debtor(uint32_t group, const PendingMessage& message,
                                           uint64_t count) {
  const auto other = rank_member(*model_, message.communicator, message.peer);
  if (!other) return std::nullopt;
  const Progress& its = progress_[*other];
  const bool is_known = !profile::is_silent(model_->groups[*other]) && !its.has_hole &&
                        !is_end_unknown(*model_, model_->groups[*other]) && !its.has_open_message &&
                        *other != group;
  const Ranks& ranks = ranks_in(message.communicator);
  const auto own = ranks.find(group);
  const bool is_forgetful = progress_[group].is_forgetful || its.is_forgetful;
  if (!is_known || is_forgetful || own == ranks.end()) return std::nullopt;
  const auto count_of = [&](const Progress& whose, uint64_t with) {
    const auto found = whose.messages.find(uint64_t{message.communicator} << 32 | with);
    return found == whose.messages.end() ? MessageCount{} : found->second;
  };
  const auto peer = static_cast<uint32_t>(message.peer);
  const uint64_t received = count_of(progress_[group], peer).received;
  return count_of(its, own->second).sent < received + count ? other : std::nullopt;
}

/// Of several requests in flight MPI_Wait waits for one, nobody knows which: not for a listener as
/// long as it may be for another one.
Awaited HangFinder::awaited_by(const OpenCall& call) {
  const PendingRequests& pending = progress_[call.group].pending;
  if (!may_be_judged(call) || !pending.collectives().empty()) return {};
  std::vector<PendingMessage> messages = pending.messages();
  const auto is_alike = [](const PendingMessage& a, const PendingMessage& b) {
    return a.communicator == b.communicator && a.peer == b.peer;
  };
  const auto is_standing = [&](const PendingMessage& one) { return pending.is_standing(one); };
  const bool is_for_all = model_->regions[call.region].name == "MPI_Waitall";
  const auto is_listener = [&](const PendingMessage& one) { return pending.is_listener(one); };
  if (is_for_all) {
    std::erase_if(messages, is_standing);
  } else if (pending.has_sends() || !std::all_of(messages.begin(), messages.end(), is_listener)) {
    // One that was started together with what is waited for may be waited for as well.
    const uint64_t newest = pending.newest_since();
    const auto is_of_newest = [&](const PendingMessage& one) {
      return is_listener(one) && one.since == newest;
    };
    if (std::any_of(messages.begin(), messages.end(), is_of_newest)) return {};
    std::erase_if(messages, is_listener);
    const auto first = std::min_element(
        messages.begin(), messages.end(),
        [](const PendingMessage& a, const PendingMessage& b) { return a.started < b.started; });
    if (first != messages.end() && pending.may_wait_for_send(*first)) return {};
  }
  const bool is_one = !messages.empty() && is_alike(messages.front(), messages.back());
  if (!is_for_all && !is_one) return {};
  std::set<uint32_t> debtors;
  for (auto at = messages.begin(); at != messages.end();) {
    const auto next =
        std::find_if(at, messages.end(), [&](const auto& one) { return !is_alike(one, *at); });
    if (const auto other = debtor(call.group, *at, static_cast<uint64_t>(next - at)))
      debtors.insert(*other);
    at = next;
  }
  return {debtors.begin(), debtors.end()};
}

void HangFinder::find_awaited() {
  for (const uint32_t i : report_.open_calls) {
    Awaited awaited = awaited_by(model_->open_calls[i]);
    if (!awaited.empty()) report_.awaited.emplace(i, std::move(awaited));
  }
}

}  // namespace aon::writers
