#include "writers/waits/match.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace aon::writers {
namespace {

bool same_envelope(const MessageEnd& a, const MessageEnd& b) {
  return a.communicator == b.communicator && a.source == b.source &&
         a.destination == b.destination && a.tag == b.tag;
}

bool is_before(const MessageEnd& a, const MessageEnd& b) {
  return std::tie(a.communicator, a.source, a.destination, a.tag, a.is_send, a.posted_ns) <
         std::tie(b.communicator, b.source, b.destination, b.tag, b.is_send, b.posted_ns);
}

bool is_before(const Member& a, const Member& b) {
  return std::tie(a.communicator, a.number, a.location) <
         std::tie(b.communicator, b.number, b.location);
}

/// How long the call waited for `until_ns`, which came later than its beginning.
uint64_t wait_in(uint64_t enter_ns, uint64_t leave_ns, uint64_t until_ns) {
  const uint64_t end_ns = std::min(until_ns, leave_ns);
  return end_ns > enter_ns ? end_ns - enter_ns : 0;
}

class MessageMatch {
 public:
  MessageMatch(const WaitContext& context, const WaitSink& sink) : context_(context), sink_(sink) {}

  Status add(const MessageEnd& send, const MessageEnd& receive) {
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
    return sink_({end.location, end.region, kind, end.shares_call, end.enter_ns, end.leave_ns,
                  wait_ns, context_.clock_error_ns(end.location, partner)});
  }

  const WaitContext& context_;
  const WaitSink& sink_;
};

std::optional<WaitKind> kind_of(CollectiveOperation operation) {
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
    default:
      return std::nullopt;
  }
}

using MemberTest = bool (*)(const Member&);

/// The one of `members` that passes and came last (or first, with `is_first`); null: none passes.
const Member* extreme_member(std::span<const Member> members, MemberTest passes, bool is_first) {
  const Member* found = nullptr;
  for (const Member& member : members) {
    if (!passes(member)) continue;
    const bool is_better = found == nullptr || (is_first ? member.enter_ns < found->enter_ns
                                                         : member.enter_ns > found->enter_ns);
    if (is_better) found = &member;
  }
  return found;
}

/// One collective, all of its members.
Status wait_for_members(std::span<const Member> members, WaitKind kind, const WaitContext& context,
                        const WaitSink& sink) {
  const MemberTest is_any = [](const Member&) { return true; };
  const MemberTest is_root = [](const Member& member) { return member.is_root; };
  const MemberTest is_other = [](const Member& member) { return !member.is_root; };
  const bool is_reduce = kind == WaitKind::kEarlyReduce;
  const bool is_broadcast = kind == WaitKind::kLateBroadcast;
  const Member* awaited = extreme_member(members,
                                         is_reduce      ? is_other
                                         : is_broadcast ? is_root
                                                        : is_any,
                                         is_reduce);
  if (awaited == nullptr) return {};
  for (const Member& member : members) {
    if ((is_reduce && !member.is_root) || (is_broadcast && member.is_root)) continue;
    const uint64_t wait_ns = wait_in(member.enter_ns, member.leave_ns, awaited->enter_ns);
    if (wait_ns == 0) continue;
    Status status =
        sink({member.location, member.region, kind, false, member.enter_ns, member.leave_ns,
              wait_ns, context.clock_error_ns(member.location, awaited->location)});
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status match_messages(std::span<MessageEnd> ends, const WaitContext& context, WaitSummary* summary,
                      const WaitSink& sink) {
  const auto end = std::remove_if(ends.begin(), ends.end(), [&](const MessageEnd& e) {
    return e.posted_ns >= context.cut_ns(e.location);
  });
  const auto left = static_cast<size_t>(end - ends.begin());
  summary->unmatched_count += ends.size() - left;
  ends = ends.first(left);
  std::sort(ends.begin(), ends.end(),
            [](const MessageEnd& a, const MessageEnd& b) { return is_before(a, b); });
  MessageMatch match(context, sink);
  for (size_t at = 0; at < ends.size();) {
    const auto envelope = ends.subspan(at);
    const auto differs = [&](const MessageEnd& e) { return !same_envelope(e, envelope.front()); };
    const auto all = static_cast<size_t>(std::find_if(envelope.begin(), envelope.end(), differs) -
                                         envelope.begin());
    size_t receive_count = 0;
    while (receive_count < all && !envelope[receive_count].is_send) ++receive_count;
    const size_t pair_count = std::min(receive_count, all - receive_count);
    for (size_t i = 0; i < pair_count; ++i) {
      Status status = match.add(envelope[receive_count + i], envelope[i]);
      if (!status) return status;
    }
    summary->message_count += pair_count;
    summary->unmatched_count += all - 2 * pair_count;
    at += all;
  }
  return {};
}

Status match_collectives(std::span<Member> members, const WaitContext& context,
                         WaitSummary* summary, const WaitSink& sink) {
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return is_before(a, b); });
  for (size_t at = 0; at < members.size();) {
    const Member& first = members[at];
    size_t count = 1;
    while (at + count < members.size() && members[at + count].communicator == first.communicator &&
           members[at + count].number == first.number) {
      ++count;
    }
    const std::span<const Member> all = members.subspan(at, count);
    at += count;
    const bool is_whole = std::all_of(all.begin(), all.end(), [&](const Member& m) {
      return m.operation == first.operation && m.enter_ns < context.cut_ns(m.location);
    });
    const std::optional<WaitKind> kind = kind_of(first.operation);
    if (!is_whole || count != context.member_count(first.communicator)) {
      ++summary->incomplete_count;
      continue;
    }
    ++summary->collective_count;
    if (!kind) continue;
    Status status = wait_for_members(all, *kind, context, sink);
    if (!status) return status;
  }
  return {};
}

}  // namespace aon::writers
