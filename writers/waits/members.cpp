// Collectives, as their members call them: which one it is, since when the member takes part in it,
// and in which call it waits for the others.

#include <aon/mpi.h>

#include <algorithm>

#include "writers/waits/collector.h"

namespace aon::writers {

namespace {

CollectiveOperation operation_on_window(RmaOperation operation) {
  switch (operation) {
    case RmaOperation::kCreate:
    case RmaOperation::kCreateAllocated:
      return CollectiveOperation::kCreateHandle;
    case RmaOperation::kFree:
    case RmaOperation::kFreeAllocated:
      return CollectiveOperation::kDestroyHandle;
    case RmaOperation::kSetInfo:
      return CollectiveOperation::kSetInfo;
    default:
      return CollectiveOperation::kOther;
  }
}

/// An event of a window or file, as one of a collective that moves nothing.
Event as_collective(const Event& event, CollectiveOperation operation, uint64_t request = 0) {
  Event collective{};
  collective.time_ns = event.time_ns;
  collective.operation = operation;
  collective.peer = -1;
  collective.request = request;
  return collective;
}

}  // namespace

void Collector::start_collective(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  const bool is_persistent = region < region_calls_.size() && region_calls_[region] == Call::kStart;
  start_member(event, is_persistent ? instance_of(event) : count_collective(event));
}

void Collector::start_member(const Event& event, std::optional<Turn> turn) {
  const std::optional<Member> member = begin_member(event, turn);
  if (!member) return;
  if (const auto ended = ended_members_.extract(event.request)) {
    Member whole = ended.mapped();
    whole.meeting = member->meeting;
    whole.number = member->number;
    whole.preparation = member->preparation;
    whole.start_ns = member->start_ns;
    whole.is_from_all = member->is_from_all;
    whole.enter_ns = std::max(whole.enter_ns, whole.start_ns);
    whole.leave_ns = std::max(whole.leave_ns, whole.enter_ns);
    keep(sink_->add_member(whole));
  } else if (live_collectives_.size() < kMaxLive) {
    live_collectives_[event.request] = *member;
  } else {
    put_unseen(*member);
  }
}

void Collector::complete_collective(const Event& event) {
  const uint32_t communicator = communicators_.global(event.communicator);
  complete_member(event, Turn{Meeting::kCollective, communicator, 0, 0});
}

void Collector::complete_member(const Event& event, std::optional<Turn> turn) {
  if (const auto own = live_collectives_.extract(event.request)) {
    keep_member(event, own.mapped());
  } else if (const auto begun = begun_members_.extract(event.request)) {
    Member member = begun.mapped();
    member.location = location_;
    keep_member(event, member);
  } else if (const auto member = begin_member(event, turn)) {
    keep_member(event, *member, event.request);
  }
}

void Collector::end_before_start(uint64_t request, const Member& ended) {
  if (ended_members_.size() < kMaxLive) ended_members_[request] = ended;
}

/// Of some members, or with others: nobody can say who is missing, so it is left out.
void Collector::add_member(const Event& event, std::optional<Turn> turn) {
  const std::optional<Member> member = begin_member(event, turn);
  if (!member) return;
  if (is_of_some()) {
    put_unseen(*member);
  } else {
    keep_member(event, *member);
  }
}

void Collector::add_object_event(const Event& event) {
  switch (event.kind) {
    case EventKind::kRmaCollectiveEnd:
      add_window_event(event);
      break;
    case EventKind::kIoOpen:
    case EventKind::kIoClose:
    case EventKind::kIoSeek:
    case EventKind::kIoChange:
    case EventKind::kIoIssued:
    case EventKind::kIoComplete:
    case EventKind::kIoCancelled:
      add_file_event(event);
      break;
    default:
      break;
  }
}

void Collector::add_window_event(const Event& event) {
  const auto operation = operation_on_window(static_cast<RmaOperation>(event.tag));
  const std::optional<Turn> turn = count_window_call(event);
  // One that failed has a number among those of its communicator.
  if (turn && operation == CollectiveOperation::kCreateHandle)
    count_call({Meeting::kCommunicator, turn->communicator, 0, 0});
  add_member(as_collective(event, operation), turn);
}

std::optional<Collector::Turn> Collector::count_window_call(const Event& event) {
  const uint32_t window = windows_.global(event.communicator);
  if (window >= model_->windows.size()) return std::nullopt;
  return count_call({Meeting::kWindow, model_->windows[window].communicator, window, 0});
}

/// The halves of a split collective are a collective each: in either may a library do all of it.
void Collector::add_file_event(const Event& event) {
  const uint32_t flags = event.io_flags();
  const bool is_seek = event.kind == EventKind::kIoSeek;
  if ((flags & (is_seek ? kIoShared : kIoCollective)) == 0) return;
  const Event call = as_collective(event, CollectiveOperation::kOther, event.request | kOfFile);
  if ((flags & kIoNonblocking) == 0) {
    add_member(call, count_file_call(event.file()));
  } else if (event.kind == EventKind::kIoIssued) {
    start_member(call, count_file_call(event.file()));
  } else {
    complete_member(call, turn_on_file(event.file()));
  }
}

/// Without its number; nothing where nobody knows whose file it is.
std::optional<Collector::Turn> Collector::turn_on_file(uint32_t local_file) const {
  const uint32_t file = files_.global(local_file);
  if (file >= model_->files.size() || !model_->files[file].communicator) return std::nullopt;
  return Turn{Meeting::kFile, *model_->files[file].communicator, file, 0};
}

std::optional<Collector::Turn> Collector::count_file_call(uint32_t local_file) {
  const std::optional<Turn> turn = turn_on_file(local_file);
  return turn ? count_call(*turn) : std::nullopt;
}

/// A member that takes part from this call on; nothing where it has nobody to meet.
std::optional<Member> Collector::begin_member(const Event& event, std::optional<Turn> turn) {
  if (!turn || turn->communicator >= model_->communicators.size()) return std::nullopt;
  int64_t rank = -1;
  if (!is_of_some()) {
    if (is_alone_on(turn->communicator)) return std::nullopt;
    rank = own_rank(turn->communicator);
  }
  Member member{};
  member.communicator = turn->communicator;
  member.location = location_;
  member.number = turn->number;
  member.start_ns = call_start(event);
  member.enter_ns = member.leave_ns = kUnseenNs;
  member.region = kUnknownRegion;
  member.rank = static_cast<uint32_t>(rank);
  member.preparation = turn->preparation;
  member.operation = event.operation;
  member.meeting = turn->meeting;
  member.is_of_some = is_of_some();
  member.is_from_all = (event.flags & kFromAll) != 0;
  // Of another world with the same name.
  if (rank < 0 && !is_of_some()) context_->exclude(member.meeting, member.object());
  return member;
}

/// Until the call that completed it ends.
void Collector::keep_member(const Event& event, Member member, std::optional<uint64_t> request) {
  member.is_root = event.peer >= 0 && event.peer == int64_t{member.rank};
  member.has_data = event.bytes != 0 && event.bytes_received != 0;
  member.receives = event.bytes_received != 0;
  member.bytes = std::min(std::max(event.bytes, event.bytes_received), kMostMemberBytes);
  if (mpi_call() != nullptr && open_members_.size() < kMaxInCall) {
    open_members_.push_back({member, request});
  } else if (!request) {
    put_unseen(member);
  }
}

/// The number of a collective on its communicator. Those that make or free communicators have
/// numbers of their own: not every such call is one of all members.
std::optional<Collector::Turn> Collector::count_collective(const Event& event) {
  const uint32_t communicator = communicators_.global(event.communicator);
  if (communicator >= model_->communicators.size()) return std::nullopt;
  const bool is_neighborhood = event.operation == CollectiveOperation::kOther;
  if (event.operation >= CollectiveOperation::kCreateHandle && !is_neighborhood)
    return count_call({Meeting::kCommunicator, communicator, 0, 0});
  CollectiveCount& own =
      collective_counts_.try_emplace(communicator, CollectiveCount{location_, 0, 0}).first->second;
  if (own.location != location_) context_->exclude_shared(Meeting::kCollective, communicator);
  if (is_neighborhood)
    return Turn{Meeting::kNeighborhood, communicator, 0, own.neighborhood_count++};
  return Turn{Meeting::kCollective, communicator, 0, own.count++};
}

/// `turn` with the number of the call that runs, among those of its region on the communicator,
/// window or file. They are called in one order there, as long as one thread does it.
std::optional<Collector::Turn> Collector::count_call(const Turn& turn) {
  const Frame* call = mpi_call();
  if (call == nullptr || (is_alone_on(turn.communicator) && !is_of_some())) return std::nullopt;
  const uint32_t object = turn.meeting >= Meeting::kWindow ? turn.preparation : turn.communicator;
  const uint32_t kind = call->region * kMeetingCount + static_cast<uint32_t>(turn.meeting);
  const uint64_t key = pack(object, kind);
  Turn counted = turn;
  if (call_counts_.size() >= kMaxCounts && !call_counts_.contains(key)) {
    if (!is_of_some()) context_->exclude(turn.meeting, object);
    counted.number = pack(call->region, uncounted_++);
    return counted;
  }
  CallCount& own = call_counts_.try_emplace(key, CallCount{location_, 0}).first->second;
  // Nobody matches those of some members by their number.
  if (own.location != location_ && !is_of_some()) context_->exclude_shared(turn.meeting, object);
  counted.number = pack(call->region, own.count++);
  return counted;
}

/// Of a persistent collective: they are started in any order, so it must have told which it is.
std::optional<Collector::Turn> Collector::instance_of(const Event& event) const {
  if (event.bytes == 0) return std::nullopt;
  const bool is_neighborhood = event.operation == CollectiveOperation::kOther;
  return Turn{is_neighborhood ? Meeting::kNeighborhood : Meeting::kCollective,
              communicators_.global(event.communicator), static_cast<uint32_t>(event.bytes >> 32),
              event.bytes & UINT32_MAX};
}

}  // namespace aon::writers
