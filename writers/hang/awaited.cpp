// Whom a process waits for that waits for requests of messages: who has sent it fewer than it has
// received and waits for, or has received fewer than it has sent.

#include <algorithm>

#include "writers/hang/hang.h"

namespace aon::writers {

HangFinder::MessageCount& HangFinder::messages_with(const Event& event) {
  const uint64_t communicator = communicators_.global(event.communicator);
  return progress_[group_].messages[communicator << 32 | static_cast<uint32_t>(event.peer)];
}

void HangFinder::add_request(const Event& event) {
  PendingRequests& pending = progress_[group_].pending;
  switch (event.kind) {
    case EventKind::kSend:
      ++messages_with(event).sent;
      break;
    case EventKind::kReceive:
      ++messages_with(event).received;
      break;
    case EventKind::kSendRequest:
      ++messages_with(event).sent;
      pending.start(event.request,
                    PendingMessage{communicators_.global(event.communicator), event.peer, 1});
      break;
    case EventKind::kReceiveRequest:
      pending.start(event.request,
                    PendingMessage{communicators_.global(event.communicator), event.peer, 0});
      break;
    case EventKind::kReceiveComplete:
      ++messages_with(event).received;
      pending.complete(event.request);
      break;
    case EventKind::kSendComplete:
    case EventKind::kRequestCancelled:
    case EventKind::kCollectiveComplete:
      pending.complete(event.request);
      break;
    case EventKind::kIoIssued:
      pending.start_io(event.request);
      break;
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      pending.complete_io(event.request);
      break;
    default:
      break;
  }
}

/// The process behind `message`, if it has sent (received) fewer than `count` messages less than
/// `group` has received from (sent to) it. Those of one communicator are taken together: tags could
/// only hide a debt.
std::optional<uint32_t> HangFinder::owed(uint32_t group, const PendingMessage& message,
                                         uint64_t count) const {
  if (message.communicator >= model_->communicators.size() || message.peer < 0) return std::nullopt;
  const GlobalCommunicator& communicator = model_->communicators[message.communicator];
  const auto& members = communicator.members;
  const auto peer = static_cast<size_t>(message.peer);
  const bool is_mapped = communicator.kind != CommunicatorKind::kInter &&
                         communicator.kind != CommunicatorKind::kNccl &&
                         !communicator.is_of_worlds && peer < members.size() &&
                         members[peer] >= 0 &&
                         static_cast<size_t>(members[peer]) < model_->groups.size();
  if (!is_mapped) return std::nullopt;
  const auto other = static_cast<uint32_t>(members[peer]);
  const auto own = std::find(members.begin(), members.end(), int64_t{group});
  if (own == members.end() || other == group || progress_[other].has_hole ||
      model_->groups[other].process == nullptr)
    return std::nullopt;
  const auto count_of = [&](uint32_t whose, size_t with) {
    const auto& messages = progress_[whose].messages;
    const auto found = messages.find(uint64_t{message.communicator} << 32 | with);
    return found == messages.end() ? MessageCount{} : found->second;
  };
  const MessageCount mine = count_of(group, peer);
  const MessageCount its = count_of(other, static_cast<size_t>(own - members.begin()));
  const auto own_rank = static_cast<int32_t>(own - members.begin());
  const auto posted = progress_[other].pending.messages();
  const auto posted_count = std::count_if(posted.begin(), posted.end(), [&](const auto& m) {
    return m.is_send == 0 && m.communicator == message.communicator &&
           (m.peer == own_rank || m.peer == kAnyPeer);
  });
  const uint64_t taken = its.received + static_cast<uint64_t>(posted_count);
  const bool is_owed = message.is_send != 0 ? taken < mine.sent : its.sent < mine.received + count;
  return is_owed ? std::optional(other) : std::nullopt;
}

/// Ascending. `messages` are sorted.
std::vector<uint32_t> HangFinder::debtors(uint32_t group, std::span<const PendingMessage> messages,
                                          bool is_send) const {
  std::vector<uint32_t> result;
  for (auto at = messages.begin(); at != messages.end();) {
    const auto next = std::find_if(at, messages.end(), [&](const auto& m) { return m != *at; });
    const auto count = static_cast<uint64_t>(next - at);
    if ((at->is_send != 0) == is_send) {
      if (const auto other = owed(group, *at, count)) result.push_back(*other);
    }
    at = next;
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// Of several requests in flight MPI_Wait waits for one, nobody knows which. A send may be over
/// before it is received, so receives are asked first.
std::optional<Awaited> HangFinder::awaited_by(const OpenCall& call) const {
  const Progress& progress = progress_[call.group];
  const std::string name =
      call.region < model_->regions.size() ? model_->regions[call.region].name : std::string();
  if (name != "MPI_Wait" && name != "MPI_Waitall") return std::nullopt;
  if (progress.has_hole || progress.pending.has_collectives() || progress.pending.has_io())
    return std::nullopt;
  const std::vector<PendingMessage> messages = progress.pending.messages();
  if (messages.empty() || (name == "MPI_Wait" && messages.front() != messages.back()))
    return std::nullopt;
  for (const bool is_send : {false, true}) {
    std::vector<uint32_t> groups = debtors(call.group, messages, is_send);
    if (!groups.empty()) return Awaited{std::move(groups), is_send};
  }
  return std::nullopt;
}

void HangFinder::find_awaited() {
  for (const uint32_t i : report_.open_calls) {
    if (auto awaited = awaited_by(model_->open_calls[i]))
      report_.awaited.emplace(i, std::move(*awaited));
  }
}

}  // namespace aon::writers
