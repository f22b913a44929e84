#include "writers/waits/match.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "writers/waits/attendance.h"

namespace aon::writers {
namespace {

/// Notes what ends at `end_ns` of one location before it began at `start_ns` of another.
/// Returns whether it does.
bool check_clocks(const WaitContext& context, uint32_t ending, uint64_t end_ns, uint32_t beginning,
                  uint64_t start_ns, ClockViolations* violations) {
  if (end_ns >= start_ns) return false;
  const uint64_t early_ns = start_ns - end_ns;
  violations->max_ns = std::max(violations->max_ns, early_ns);
  const auto nodes = std::minmax({context.node(ending), context.node(beginning)});
  if (nodes.first != nodes.second) {
    uint64_t& largest_ns = violations->by_nodes[nodes];
    largest_ns = std::max(largest_ns, early_ns);
  }
  return true;
}

class MessageMatch {
 public:
  MessageMatch(const WaitContext& context, const WaitSink& sink, ClockViolations* violations)
      : context_(context), sink_(sink), violations_(violations) {}

  Status add(const MessageEnd& send, const MessageEnd& receive) {
    if (receive.leave_ns != 0 && check_clocks(context_, receive.location, receive.leave_ns,
                                              send.location, send.posted_ns, violations_)) {
      ++violations_->message_count;
    }
    const uint64_t late_sender_ns = wait_in(receive.enter_ns, receive.leave_ns, send.posted_ns);
    if (late_sender_ns != 0)
      return tell(receive, send.location, WaitKind::kLateSender, late_sender_ns);
    // One that returned before has not waited for it.
    if (send.leave_ns <= receive.posted_ns) return {};
    const uint64_t late_receiver_ns = wait_in(send.enter_ns, send.leave_ns, receive.posted_ns);
    if (late_receiver_ns == 0) return {};
    return tell(send, receive.location, WaitKind::kLateReceiver, late_receiver_ns);
  }

 private:
  Status tell(const MessageEnd& end, uint32_t partner, WaitKind kind, uint64_t wait_ns) {
    return sink_({end.location, end.region, end.enter_ns, end.leave_ns, wait_ns,
                  context_.clock_error_ns(end.location, partner), kind,
                  context_.is_test(end.region)});
  }

  const WaitContext& context_;
  const WaitSink& sink_;
  ClockViolations* violations_;
};

/// The members of one collective: the groups of an inter-communicator, of which each waits for the
/// other (MPI-4.1, 6.2.3), else all of them twice.
struct Groups {
  std::span<const Member> first;
  std::span<const Member> second;
  bool are_two;
};

Groups divide(std::span<Member> members, uint32_t first_group_count) {
  if (first_group_count == 0) return {members, members, false};
  const auto second = std::partition(members.begin(), members.end(),
                                     [&](const Member& m) { return m.rank < first_group_count; });
  const auto count = static_cast<size_t>(second - members.begin());
  return {members.first(count), members.subspan(count), true};
}

/// Whether one of `leaving` was seen to leave before one of `entering` entered.
bool leave_too_early(std::span<const Member> leaving, std::span<const Member> entering,
                     const WaitContext& context, ClockViolations* violations) {
  const auto first =
      std::min_element(leaving.begin(), leaving.end(),
                       [](const Member& a, const Member& b) { return a.leave_ns < b.leave_ns; });
  const auto last =
      std::max_element(entering.begin(), entering.end(),
                       [](const Member& a, const Member& b) { return a.start_ns < b.start_ns; });
  return check_clocks(context, first->location, first->leave_ns, last->location, last->start_ns,
                      violations);
}

void check_collective(const Groups& groups, const WaitContext& context,
                      ClockViolations* violations) {
  for (const auto& group : {groups.first, groups.second}) {
    if (!std::all_of(group.begin(), group.end(), joins_all)) return;
  }
  bool is_violation = leave_too_early(groups.first, groups.second, context, violations);
  if (groups.are_two)
    is_violation |= leave_too_early(groups.second, groups.first, context, violations);
  if (is_violation) ++violations->collective_count;
}

std::optional<WaitKind> kind_of_collective(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::kBarrier:
      return WaitKind::kBarrier;
    case CollectiveOperation::kAllgather:
    case CollectiveOperation::kAllgatherv:
    case CollectiveOperation::kAlltoall:
    case CollectiveOperation::kAlltoallv:
    case CollectiveOperation::kAlltoallw:
    case CollectiveOperation::kAllreduce:
    case CollectiveOperation::kReduceScatter:
    case CollectiveOperation::kReduceScatterBlock:
      return WaitKind::kNxN;
    case CollectiveOperation::kBroadcast:
    case CollectiveOperation::kScatter:
    case CollectiveOperation::kScatterv:
      return WaitKind::kLateBroadcast;
    case CollectiveOperation::kReduce:
    case CollectiveOperation::kGather:
    case CollectiveOperation::kGatherv:
      return WaitKind::kEarlyReduce;
    case CollectiveOperation::kScan:
    case CollectiveOperation::kExscan:
      return WaitKind::kEarlyScan;
    default:
      return std::nullopt;
  }
}

WaitKind kind_on_object(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::kCreateHandle:
      return WaitKind::kCreate;
    case CollectiveOperation::kDestroyHandle:
      return WaitKind::kFree;
    case CollectiveOperation::kSetInfo:
      return WaitKind::kSetInfo;
    default:
      return WaitKind::kFence;
  }
}

std::optional<WaitKind> kind_of(const Member& member) {
  switch (member.meeting) {
    case Meeting::kCollective:
      return kind_of_collective(member.operation);
    case Meeting::kNeighborhood:
      return WaitKind::kNeighbors;
    case Meeting::kCommunicator:
    case Meeting::kWindow:
      return kind_on_object(member.operation);
    case Meeting::kFile:
      return WaitKind::kFile;
  }
  return std::nullopt;
}

using MemberTest = bool (*)(const Member&);

/// The one of `members` that passes and came last (or first, with `is_first`); null: none passes.
const Member* extreme_member(std::span<const Member> members, MemberTest passes, bool is_first) {
  const Member* found = nullptr;
  for (const Member& member : members) {
    if (!passes(member)) continue;
    const bool is_better = found == nullptr || (is_first ? member.start_ns < found->start_ns
                                                         : member.start_ns > found->start_ns);
    if (is_better) found = &member;
  }
  return found;
}

/// What `member` waited for `awaited`, in the call that completed the collective.
Status wait_for(const Member& member, const Member& awaited, WaitKind kind,
                const WaitContext& context, const WaitSink& sink) {
  const uint64_t wait_ns = wait_in(member.enter_ns, member.leave_ns, awaited.start_ns);
  if (wait_ns == 0) return {};
  return sink({member.location, member.region, member.enter_ns, member.leave_ns, wait_ns,
               context.clock_error_ns(member.location, awaited.location), kind,
               context.is_test(member.region)});
}

/// One collective: `members` wait for what `others` have, the same group or the other one.
Status wait_for_members(std::span<const Member> members, std::span<const Member> others,
                        WaitKind kind, const WaitContext& context, const WaitSink& sink) {
  const MemberTest is_any = [](const Member&) { return true; };
  const MemberTest is_root = [](const Member& member) { return member.is_root; };
  const MemberTest is_other = [](const Member& member) { return !member.is_root; };
  const bool is_reduce = kind == WaitKind::kEarlyReduce;
  const bool is_broadcast = kind == WaitKind::kLateBroadcast;
  const Member* awaited = extreme_member(others,
                                         is_reduce      ? is_other
                                         : is_broadcast ? is_root
                                                        : is_any,
                                         is_reduce);
  if (awaited == nullptr) return {};
  for (const Member& member : members) {
    if ((is_reduce && !member.is_root) || (is_broadcast && member.is_root)) continue;
    Status status = wait_for(member, *awaited, kind, context, sink);
    if (!status) return status;
  }
  return {};
}

/// One collective between two groups. One that moves data in one direction alone is nothing to wait
/// for in the group that gets none.
Status wait_for_other_group(const Groups& groups, WaitKind kind, const WaitContext& context,
                            const WaitSink& sink) {
  const auto gets_something = [&](std::span<const Member> members) {
    return kind != WaitKind::kNxN ||
           std::any_of(members.begin(), members.end(), [](const Member& m) { return m.receives; });
  };
  Status status;
  if (gets_something(groups.first))
    status = wait_for_members(groups.first, groups.second, kind, context, sink);
  if (status && gets_something(groups.second))
    status = wait_for_members(groups.second, groups.first, kind, context, sink);
  return status;
}

std::vector<const Member*> by_rank(std::span<const Member> members) {
  std::vector<const Member*> sorted;
  for (const Member& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(),
            [](const Member* a, const Member* b) { return a->rank < b->rank; });
  return sorted;
}

/// One scan, all of its members: each needs what those of lower rank have.
Status wait_for_lower(std::span<const Member> members, const WaitContext& context,
                      const WaitSink& sink) {
  const std::vector<const Member*> sorted = by_rank(members);
  const Member* latest = sorted.front();
  for (const Member* member : sorted) {
    Status status = wait_for(*member, *latest, WaitKind::kEarlyScan, context, sink);
    if (!status) return status;
    if (member->start_ns > latest->start_ns) latest = member;
  }
  return {};
}

/// One neighbourhood collective, all of its members: each needs what its sources have.
Status wait_for_sources(std::span<const Member> members, const WaitContext& context,
                        const WaitSink& sink) {
  const std::vector<const Member*> sorted = by_rank(members);
  for (const Member* member : sorted) {
    const Member* latest = member;
    for (const uint32_t source : *context.sources(member->communicator, member->rank)) {
      if (sorted[source]->start_ns > latest->start_ns) latest = sorted[source];
    }
    Status status = wait_for(*member, *latest, WaitKind::kNeighbors, context, sink);
    if (!status) return status;
  }
  return {};
}

/// Whether `member` may still have been in its call when `late` entered.
bool may_have_met(const Member& member, const Member& late, const WaitContext& context) {
  if (late.start_ns <= member.leave_ns) return true;
  const uint64_t error_ns = context.clock_error_ns(member.location, late.location);
  return error_ns != kUnknownClockError && late.start_ns - member.leave_ns <= error_ns;
}

/// One collective, all of its members, that need not hold anybody until all have entered: each has
/// waited at most for the last one that entered before it left.
Status wait_while_inside(std::span<Member> members, WaitKind kind, const WaitContext& context,
                         const WaitSink& sink) {
  const auto is_earlier = [](const Member& a, const Member& b) { return a.start_ns < b.start_ns; };
  std::sort(members.begin(), members.end(), is_earlier);
  for (const Member& member : members) {
    const Member* awaited = &members.back();
    if (!may_have_met(member, *awaited, context)) {
      const auto next = std::partition_point(
          members.begin(), members.end(),
          [&](const Member& other) { return may_have_met(member, other, context); });
      awaited = next == members.begin() ? &member : &*std::prev(next);
    }
    Status status = wait_for(member, *awaited, kind, context, sink);
    if (!status) return status;
  }
  return {};
}

/// The ends that can be matched, in order.
class Ends {
 public:
  Ends(SortedStore<MessageEnd>::Reader reader, const WaitContext& context, uint64_t* left_out)
      : reader_(std::move(reader)), context_(context), left_out_(left_out) {}

  /// Null behind the last one.
  const MessageEnd* end() const { return end_; }

  Status advance() {
    for (;;) {
      Result<const MessageEnd*> next = reader_.next();
      if (!next) return next.error();
      end_ = *next;
      if (end_ == nullptr || end_->posted_ns < context_.message_cut_ns(end_->location)) return {};
      ++*left_out_;
    }
  }

 private:
  SortedStore<MessageEnd>::Reader reader_;
  const WaitContext& context_;
  uint64_t* left_out_;
  const MessageEnd* end_ = nullptr;
};

/// Whether all ends of an envelope came from one thread so far. The order of two threads' calls is
/// not known to MPI either.
class OneThread {
 public:
  bool is_so_far(const MessageEnd& end) {
    if (!has_first_ || first_.envelope() != end.envelope()) {
      first_ = end;
      has_first_ = true;
      is_one_ = true;
    }
    is_one_ = is_one_ && first_.poster == end.poster;
    return is_one_;
  }

  /// The same of those so far whose other end this is.
  bool was_for(const MessageEnd& other_end) const {
    return is_one_ || first_.envelope() != other_end.envelope();
  }

 private:
  MessageEnd first_{};
  bool has_first_ = false;
  bool is_one_ = true;
};

/// Whether it can be said whom the member waits for.
bool is_known(const Member& member, const WaitContext& context) {
  if (member.enter_ns == kUnseenNs) return false;
  if (member.enter_ns >= context.cut_ns(member.location)) return false;
  const bool has_calls = member.meeting >= Meeting::kCommunicator;
  if (has_calls && member.enter_ns >= context.object_cut_ns(member)) return false;
  return member.meeting != Meeting::kNeighborhood ||
         context.sources(member.communicator, member.rank) != nullptr;
}

/// Whether all is known of the operation, and it is one of the communicator's kind.
bool is_whole(std::span<const Member> members, const Groups& groups, const WaitContext& context) {
  const Member& first = members.front();
  const size_t first_group_count = context.first_group_count(first.communicator);
  const std::optional<WaitKind> kind = kind_of(first);
  const bool has_order = kind == WaitKind::kEarlyScan || kind == WaitKind::kNeighbors;
  if (groups.are_two && (has_order || groups.first.size() != first_group_count)) return false;
  return members.size() == context.member_count(first) &&
         std::all_of(members.begin(), members.end(), [&](const Member& m) {
           return m.operation == first.operation && is_known(m, context);
         });
}

Status match_one_collective(std::span<Member> members, const WaitContext& context,
                            WaitSummary* summary, TrueTimeTable* times, const WaitSink& sink) {
  const Groups groups = divide(members, context.first_group_count(members.front().communicator));
  if (!is_whole(members, groups, context)) {
    ++summary->incomplete_count;
    if (members.front().is_of_some) {
      ++summary->of_some_count;
    } else if (context.is_of_worlds(members.front().communicator)) {
      ++summary->holes[Hole::kWorlds];
    }
    return {};
  }
  const std::optional<WaitKind> kind = kind_of(members.front());
  if (!kind) return {};
  ++summary->collective_count;
  if (members.front().meeting >= Meeting::kCommunicator)
    return wait_while_inside(members, *kind, context, sink);
  check_collective(groups, context, &summary->clock_violations);
  if (groups.are_two) return wait_for_other_group(groups, *kind, context, sink);
  if (*kind == WaitKind::kBarrier || *kind == WaitKind::kNxN)
    note_attendance(members, context, summary, times);
  if (*kind == WaitKind::kEarlyScan) return wait_for_lower(members, context, sink);
  if (*kind == WaitKind::kNeighbors) return wait_for_sources(members, context, sink);
  return wait_for_members(members, members, *kind, context, sink);
}

}  // namespace

Status match_messages(SortedStore<MessageEnd>* sends, SortedStore<MessageEnd>* receives,
                      const WaitContext& context, WaitSummary* summary, const WaitSink& sink) {
  Result<SortedStore<MessageEnd>::Reader> send_reader = sends->read();
  if (!send_reader) return send_reader.error();
  Result<SortedStore<MessageEnd>::Reader> receive_reader = receives->read();
  if (!receive_reader) return receive_reader.error();
  Ends send(std::move(*send_reader), context, &summary->unmatched_count);
  Ends receive(std::move(*receive_reader), context, &summary->unmatched_count);
  MessageMatch match(context, sink, &summary->clock_violations);
  Status status = send.advance();
  if (status) status = receive.advance();
  OneThread senders;
  OneThread receivers;
  while (status && (send.end() != nullptr || receive.end() != nullptr)) {
    context.beat();
    const bool has_both = send.end() != nullptr && receive.end() != nullptr;
    // Both are asked: each follows its side.
    const bool is_one_sender = send.end() == nullptr || senders.is_so_far(*send.end());
    const bool is_one_receiver = receive.end() == nullptr || receivers.is_so_far(*receive.end());
    if (has_both && is_one_sender && is_one_receiver &&
        send.end()->envelope() == receive.end()->envelope()) {
      ++summary->message_count;
      status = match.add(*send.end(), *receive.end());
      if (status) status = send.advance();
      if (status) status = receive.advance();
      continue;
    }
    ++summary->unmatched_count;
    const bool is_send = receive.end() == nullptr ||
                         (has_both && send.end()->envelope() < receive.end()->envelope());
    if (!is_one_sender || !is_one_receiver) {
      ++summary->holes[Hole::kThreads];
    } else if (is_send && receivers.was_for(*send.end())) {
      ++summary->holes[Hole::kUnreceived];
    }
    status = is_send ? send.advance() : receive.advance();
  }
  return status;
}

Status match_collectives(SortedStore<Member>* members, const WaitContext& context,
                         WaitSummary* summary, TrueTimeTable* times, const WaitSink& sink) {
  Result<SortedStore<Member>::Reader> reader = members->read();
  if (!reader) return reader.error();
  std::vector<Member> instance;
  for (;;) {
    context.beat();
    Result<const Member*> next = reader->next();
    if (!next) return next.error();
    const Member* member = *next;
    const bool is_over = !instance.empty() &&
                         (member == nullptr || member->instance() != instance.front().instance());
    if (is_over) {
      Status status = match_one_collective(instance, context, summary, times, sink);
      if (!status) return status;
      instance.clear();
    }
    if (member == nullptr) break;
    // More than there are members is damage: enough of it to be told, and no more memory.
    if (instance.size() <= context.member_count(*member)) instance.push_back(*member);
  }
  return {};
}

}  // namespace aon::writers
