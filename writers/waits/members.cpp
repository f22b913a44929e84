// Collectives, as their members call them: which one it is, since when the member takes part in it,
// and in which call it waits for the others.

#include <algorithm>

#include "writers/waits/collector.h"

namespace aon::writers {

void Collector::start_collective(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  const bool is_persistent = region < region_calls_.size() && region_calls_[region] == Call::kStart;
  const std::optional<Member> member =
      begin_member(event, is_persistent ? instance_of(event) : count_collective(event));
  if (!member) return;
  if (const auto ended = ended_members_.extract(event.request)) {
    Member whole = ended.mapped();
    whole.number = member->number;
    whole.preparation = member->preparation;
    whole.start_ns = member->start_ns;
    whole.enter_ns = std::max(whole.enter_ns, whole.start_ns);
    keep(sink_->add_member(whole));
  } else if (live_collectives_.size() < kMaxLive) {
    live_collectives_[event.request] = *member;
  } else {
    put_unseen(*member);
  }
}

void Collector::complete_collective(const Event& event) {
  if (const auto own = live_collectives_.extract(event.request)) {
    keep_member(event, own.mapped());
  } else if (const auto begun = begun_members_.extract(event.request)) {
    Member member = begun.mapped();
    member.location = location_;
    keep_member(event, member);
  } else if (const auto member = begin_member(event, Turn{})) {
    keep_member(event, *member, event.request);
  }
}

void Collector::end_before_start(uint64_t request, const Member& ended) {
  if (ended_members_.size() < kMaxLive) ended_members_[request] = ended;
}

void Collector::add_member(const Event& event) {
  const std::optional<Member> member = begin_member(event, count_collective(event));
  if (member) keep_member(event, *member);
}

/// A member that takes part from this call on; nothing where it has nobody to meet.
std::optional<Member> Collector::begin_member(const Event& event, std::optional<Turn> turn) {
  if (!turn || is_alone(event)) return std::nullopt;
  const uint32_t communicator = communicators_.global(event.communicator);
  // Of another world with the same name.
  const int64_t rank = own_rank(communicator);
  if (rank < 0) context_->exclude(communicator);
  Member member{};
  member.communicator = communicator;
  member.location = location_;
  member.number = turn->number;
  member.start_ns = call_start(event);
  member.enter_ns = member.leave_ns = kUnseenNs;
  member.region = kUnknownRegion;
  member.rank = static_cast<uint32_t>(rank);
  member.preparation = turn->preparation;
  member.operation = event.operation;
  return member;
}

/// Until the call that completed it ends.
void Collector::keep_member(const Event& event, Member member, std::optional<uint64_t> request) {
  member.is_root = event.peer >= 0 && event.peer == int64_t{member.rank};
  member.has_data = event.bytes != 0 && event.bytes_received != 0;
  member.receives = event.bytes_received != 0;
  member.bytes = std::max(event.bytes, event.bytes_received);
  if (mpi_call() != nullptr && open_members_.size() < kMaxInCall) {
    open_members_.push_back({member, request});
  } else if (!request) {
    put_unseen(member);
  }
}

/// The number of a collective on its communicator. Creating and freeing communicators has none:
/// not every such call is one of all members.
std::optional<Collector::Turn> Collector::count_collective(const Event& event) {
  const uint32_t communicator = communicators_.global(event.communicator);
  if (communicator >= model_->communicators.size()) return std::nullopt;
  const bool is_neighborhood = event.operation == CollectiveOperation::kOther;
  if (event.operation >= CollectiveOperation::kCreateHandle && !is_neighborhood)
    return std::nullopt;
  CollectiveCount& own =
      collective_counts_.try_emplace(communicator, CollectiveCount{location_, 0, 0}).first->second;
  if (own.location != location_) context_->exclude(communicator);
  return Turn{0, is_neighborhood ? own.neighborhood_count++ | kNeighborhood : own.count++};
}

/// Of a persistent collective: they are started in any order, so it must have told which it is.
std::optional<Collector::Turn> Collector::instance_of(const Event& event) const {
  const bool is_known =
      communicators_.global(event.communicator) < model_->communicators.size() && event.bytes != 0;
  if (!is_known) return std::nullopt;
  return Turn{static_cast<uint32_t>(event.bytes >> 32), event.bytes & UINT32_MAX};
}

}  // namespace aon::writers
