// One record of EventOrder -> its events. Which events a call makes, and at which of its two ends,
// follows Score-P: a send stands at entry, a receive and the end of a collective at exit.

#include <aon/mpi.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "writers/assemble/event_order.h"
#include "writers/profile/mpi_calls.h"

namespace aon::writers {
namespace {

bool is_of_handles(CollectiveOperation operation) {
  return operation == CollectiveOperation::kCreateHandle ||
         operation == CollectiveOperation::kDestroyHandle ||
         operation == CollectiveOperation::kSetInfo;
}

/// A call that failed, or has not returned, moved nothing that we know of.
bool has_transfer(const RecordHead& head) { return (head.flags & (kFailed | kOpenAtEnd)) == 0; }

/// Whether a call that failed may have exchanged something: a receive has taken a message that was
/// too long, a member of a collective has met the others. Who fails to make a communicator has
/// none.
bool may_have_exchanged(const Record& record) {
  const RecordHead& head = record.head;
  if (head.kind == RecordKind::kExchange) return true;
  if (is_numbered_on_window(record) || is_collective_on_file(record)) return true;
  if (head.kind == RecordKind::kCollective)
    return !is_of_handles(static_cast<CollectiveOperation>(pair_high(record.words[1])));
  return head.kind == RecordKind::kMessage && (head.flags & kIncoming) != 0;
}

LiveRequest visible_request() {
  return {.id = 0,
          .is_visible = true,
          .operation = CollectiveOperation::kOther,
          .communicator = 0,
          .root = -1,
          .bytes_sent = 0,
          .bytes_received = 0};
}

}  // namespace

Event& EventOrder::append(EventKind kind, uint64_t time_ns, uint32_t region) {
  if (events_.size() >= kEventBatch) flush();
  if (time_ns < last_ns_) {
    ++outcome_->clamped_count;
    time_ns = last_ns_;
  }
  last_ns_ = time_ns;
  Event& event = events_.emplace_back();
  event.time_ns = time_ns;
  event.kind = kind;
  event.region = region;
  event.peer = -1;
  event.weight = 1;
  return event;
}

Event& EventOrder::enter_region(uint32_t region, uint64_t start_ticks) {
  const uint32_t id = known_region(region);
  open_.push_back({id, start_ticks});
  return append(EventKind::kEnter, clock_.to_ns(start_ticks), id);
}

/// Closes the open regions above `depth`.
void EventOrder::close_regions(size_t depth, uint64_t time_ns, Close how) {
  while (open_.size() > depth) close_newest(time_ns, how);
}

/// Of unseen ones nothing was shown.
void EventOrder::close_newest(uint64_t time_ns, Close how) {
  const Region region = open_.back();
  open_.pop_back();
  if (region.unseen_count != 0) return;
  if (how == Close::kOpenAtEnd) {
    append(EventKind::kOpenAtEnd, time_ns, region.id);
    ++outcome_->open_region_count;
  } else if (how == Close::kCut) {
    append(EventKind::kCut, time_ns, region.id);
    ++outcome_->cut_region_count;
  }
  append(EventKind::kLeave, time_ns, region.id);
}

/// kEnd: closes up to its region; an end whose begin is unknown is dropped and counted. Where the
/// newest region began in a hole, it is that one's end.
void EventOrder::leave_region(uint32_t region, uint64_t time_ns) {
  if (was_left_out(region)) return;
  if (open_.size() > span_base_ && open_.back().unseen_count != 0) {
    cut_regions(1, time_ns);
    ++outcome_->cut_region_count;
    return;
  }
  for (size_t depth = open_.size(); depth > span_base_; --depth) {
    if (open_[depth - 1].unseen_count != 0 || open_[depth - 1].id != region) continue;
    left_out_.clear();  // they are in it
    outcome_->unbalanced_region_count += open_.size() - depth;
    close_regions(depth - 1, time_ns, Close::kEnded);
    return;
  }
  ++outcome_->unbalanced_region_count;
}

/// A begin whose value is known: after an eviction only the region is.
void EventOrder::emit_begin(const Record& record, const Record* counters) {
  const RecordHead& head = record.head;
  if (!has_room(known_region(head.id))) return;
  emit_counters(counters, false, clock_.to_ns(head.start_ticks));
  Event& event = enter_region(head.id, head.start_ticks);
  event.set_value(head.a32, head.a64);
}

/// Its counters are of the region itself: where others were not ended before it, nobody's.
void EventOrder::emit_end(const Record& record, const Record* counters) {
  const uint32_t region = known_region(record.head.id);
  const uint64_t time_ns = clock_.to_ns(record.head.start_ticks);
  if (left_out_.empty() && open_.size() > span_base_ && open_.back().id == region)
    emit_counters(counters, false, time_ns);
  leave_region(region, time_ns);
}

/// A range is two marks; its end knows when it began.
void EventOrder::emit_mark(const Record& record) {
  const RecordHead& head = record.head;
  const uint64_t time_ns = clock_.to_ns(head.start_ticks);
  Event& event = append(EventKind::kMark, time_ns, known_region(head.id));
  event.set_value(head.a32, head.a64);
  if (event.value_type() != ValueType::kRangeStart && event.value_type() != ValueType::kRangeEnd) {
    return;
  }
  event.request = head.a64;
  event.bytes = 0;
  event.peer = 0;
  if (head.slot_count < 2) return;
  if (event.value_type() == ValueType::kRangeStart) {
    event.peer = static_cast<int32_t>(std::min<uint64_t>(record.words[0], kValueTypeCount));
    event.bytes = record.words[1];
  } else {
    event.bytes = time_ns - std::min(clock_.to_ns(record.words[0]), time_ns);
  }
}

void EventOrder::emit_simple(const Record& record, const Record* counters) {
  const RecordHead& head = record.head;
  switch (head.kind) {
    case RecordKind::kBegin:
      emit_begin(record, counters);
      break;
    case RecordKind::kEnd:
      emit_end(record, counters);
      break;
    case RecordKind::kCompletion:
      if (head.id == static_cast<uint32_t>(RecordKind::kIo)) {
        emit_io_completion(record);
      } else {
        emit_completion(record);
      }
      break;
    case RecordKind::kMark:
      emit_mark(record);
      break;
    case RecordKind::kSample:
      emit_sample(record);
      break;
    case RecordKind::kCallSample: {
      Event& event = append(EventKind::kCallSample, clock_.to_ns(head.start_ticks), head.id);
      event.peer = static_cast<int32_t>(head.a32);
      event.bytes = head.a64;
      break;
    }
    case RecordKind::kThread:
      std::fill(std::begin(counter_last_), std::end(counter_last_), 0);
      left_out_.clear();
      close_regions(span_base_, clock_.to_ns(head.start_ticks), Close::kOpenAtEnd);
      break;
    default:
      break;
  }
}

void EventOrder::emit_span(const Record& record, uint32_t children, const Record* counters) {
  const RecordHead& head = record.head;
  const uint32_t region = known_region(head.id);
  const uint64_t start_ns = clock_.to_ns(head.start_ticks);
  emit_counters(counters, false, start_ns);
  Event& enter = append(EventKind::kEnter, start_ns, region);
  enter.flags = head.flags;
  if (head.kind == RecordKind::kSpan && (head.flags & kSampledCall) != 0) {
    enter.weight = static_cast<uint32_t>(
        std::clamp<uint64_t>(head.a64, 1, std::numeric_limits<uint32_t>::max()));
  } else if (head.kind == RecordKind::kSpan && (head.flags & kOpenAtEnd) == 0 &&
             head.a32 == static_cast<uint32_t>(ValueType::kSigned)) {
    enter.set_value(head.a32, head.a64);  // of MPI_Pcontrol; of an open call a32 is a communicator
    if (profile::pauses(enter)) ++outcome_->pause_count;
  }
  if (concerns_nobody_else(record)) {
    enter.flags &= static_cast<uint16_t>(~kFailed);
  } else if ((head.flags & kFailed) != 0) {
    if (may_have_exchanged(record)) ++outcome_->unmatched_count;
    tell_failed_collective(record, &enter);
  }
  if (has_transfer(head)) begin_transfer(record, start_ns);
  const uint64_t end = end_ticks(record);
  if (children != kNone) {
    const size_t outer_base = span_base_;
    span_base_ = open_.size();
    emit_list(children, end);
    close_regions(span_base_, clock_.to_ns(end), Close::kEnded);
    span_base_ = outer_base;
  }
  const uint64_t end_ns = clock_.to_ns(end);
  if (has_transfer(head) || is_split_end(record)) end_transfer(record, end_ns);
  if ((head.flags & kOpenAtEnd) != 0) {
    append(EventKind::kOpenAtEnd, end_ns, region);
    ++outcome_->open_region_count;
    ++outcome_->open_call_count;
  }
  emit_counters(counters, true, end_ns);
  append(EventKind::kLeave, end_ns, region).flags = head.flags;
}

void EventOrder::begin_transfer(const Record& record, uint64_t time_ns) {
  const RecordHead& head = record.head;
  if (head.kind == RecordKind::kRma) {
    begin_rma(record, time_ns);
    return;
  }
  if (head.kind == RecordKind::kIo) {
    begin_io(record, time_ns);
    return;
  }
  if (head.kind == RecordKind::kCollective) {
    if ((head.flags & kNonblocking) == 0 && communicators_.contains(head.a32)) {
      append(EventKind::kCollectiveBegin, time_ns, head.id);
    }
    return;
  }
  if (head.kind == RecordKind::kExchange) {
    emit_message(EventKind::kSend, time_ns, record, record.words[0], head.a64, 0);
    return;
  }
  if (head.kind != RecordKind::kMessage || (head.flags & kOutgoing) == 0) return;
  if ((head.flags & kNonblocking) == 0) {
    emit_message(EventKind::kSend, time_ns, record, record.words[0], head.a64, 0);
    return;
  }
  LiveRequest request = visible_request();
  request.is_visible =
      rank_in(head.a32, pair_low(record.words[0])) >= 0 && communicators_.contains(head.a32);
  const uint64_t id = requests_.start(record.words[1], request);
  emit_message(EventKind::kSendRequest, time_ns, record, record.words[0], head.a64, id);
}

void EventOrder::end_transfer(const Record& record, uint64_t time_ns) {
  const RecordHead& head = record.head;
  if (head.kind == RecordKind::kRma) {
    end_rma(record, time_ns);
    return;
  }
  if (head.kind == RecordKind::kIo) {
    end_io(record, time_ns);
    return;
  }
  if (head.kind == RecordKind::kExchange) {
    emit_message(EventKind::kReceive, time_ns, record, record.words[2], record.words[1], 0);
    return;
  }
  if (head.kind == RecordKind::kMessage && (head.flags & kIncoming) != 0) {
    if ((head.flags & kNonblocking) == 0) {
      emit_message(EventKind::kReceive, time_ns, record, record.words[0], head.a64, 0);
      return;
    }
    const int32_t source = pair_low(record.words[0]);
    LiveRequest request = visible_request();
    request.is_visible = source != kNoPeer;
    const uint64_t id = requests_.start(record.words[1], request);
    if (!request.is_visible) return;
    Event& event = append(EventKind::kReceiveRequest, time_ns, head.id);
    event.communicator = head.a32;
    event.peer = source == kAnyPeer ? source : rank_in(head.a32, source);
    event.tag = pair_high(record.words[0]);
    event.request = id;
    return;
  }
  if (head.kind != RecordKind::kCollective) return;
  if (!communicators_.contains(head.a32)) {  // its definition is lost; a request's end counts
    if (head.a32 != 0 && (head.flags & kNonblocking) == 0) ++outcome_->unmatched_count;
    return;
  }
  LiveRequest collective = visible_request();
  collective.operation = static_cast<CollectiveOperation>(pair_high(record.words[1]));
  collective.communicator = head.a32;
  collective.root = pair_low(record.words[1]);
  collective.bytes_sent = head.a64;
  collective.bytes_received = record.words[0];
  if ((head.flags & kNonblocking) == 0) {
    emit_collective(EventKind::kCollectiveEnd, collective, time_ns);
    events_.back().flags = head.flags & kFromAll;
    return;
  }
  Event& event = append(EventKind::kCollectiveRequest, time_ns, head.id);
  event.operation = collective.operation;
  event.communicator = collective.communicator;
  event.bytes = collective_instance(record);
  event.request = requests_.start(record.words[2], collective);
  event.flags = head.flags & kFromAll;
}

/// Whether `peer`, which is no placeholder, is of another world, or nobody knows of which.
bool EventOrder::is_foreign(uint32_t communicator, int32_t peer) const {
  return rank_in(communicator, peer) < 0 || !communicators_.contains(communicator);
}

/// Whether members of another world have a part in it.
bool EventOrder::is_partial(uint32_t communicator, CollectiveOperation operation) const {
  return operation < CollectiveOperation::kCreateHandle && is_partial(communicator);
}

/// Appends a message event, of kPartitioned with its channel in `bytes_received`; of one to or from
/// another world, or of a communicator that is not known, only its bytes. None where the peer is
/// MPI_PROC_NULL.
void EventOrder::emit_message(EventKind kind, uint64_t time_ns, const Record& record,
                              uint64_t peer_tag, uint64_t bytes, uint64_t request) {
  if (pair_low(peer_tag) < 0) return;
  if (is_foreign(record.head.a32, pair_low(peer_tag))) {
    ++outcome_->unmatched_count;
    const bool is_send = kind == EventKind::kSend || kind == EventKind::kSendRequest;
    Event& event = append(EventKind::kForeignMessage, time_ns, record.head.id);
    event.bytes = bytes;
    event.flags = is_send ? kOutgoing : kIncoming;
    return;
  }
  Event& event = append(kind, time_ns, record.head.id);
  event.communicator = record.head.a32;
  event.peer = rank_in(record.head.a32, pair_low(peer_tag));
  event.tag = pair_high(peer_tag);
  event.bytes = bytes;
  event.request = request;
  event.flags = record.head.flags & kPartitioned;
  event.bytes_received = partitioned_channel(record);
  if (kind == EventKind::kReceive && record.head.kind == RecordKind::kCompletion)
    event.flags |= kNonblocking;
}

/// What members of another world have of it is in no trace of this job.
void EventOrder::emit_collective(EventKind kind, const LiveRequest& collective, uint64_t time_ns) {
  if (is_partial(collective.communicator, collective.operation)) ++outcome_->unmatched_count;
  Event& event = append(kind, time_ns, kUnknownRegion);
  event.operation = collective.operation;
  event.communicator = collective.communicator;
  event.peer = std::max(rank_in(collective.communicator, collective.root), -1);
  event.bytes = collective.bytes_sent;
  event.bytes_received = collective.bytes_received;
  event.request = collective.id;
}

/// Whether a request that failed may have exchanged something: nobody knows whether its message was
/// sent, or taken, or whom its collective met.
bool EventOrder::may_have_completed(const Record& completion) const {
  const RecordHead& head = completion.head;
  if ((head.flags & kFailed) == 0) return false;
  if ((head.flags & kIncoming) != 0) return pair_low(completion.words[0]) != kNoPeer;
  if ((head.flags & kOutgoing) != 0) return true;
  return has_others(head.a32) &&
         !is_of_handles(static_cast<CollectiveOperation>(pair_high(completion.words[0])));
}

/// A completion whose start is on another thread or was lost still shows its message: a receive
/// needs no request for that, which readers look for on the same thread; its event has kNonblocking
/// and the id of the request. A collective's end says all that there is.
void EventOrder::emit_end_alone(const Record& record, uint64_t time_ns) {
  const RecordHead& head = record.head;
  const bool is_collective = head.id == static_cast<uint32_t>(RecordKind::kCollective);
  const bool is_receive = (head.flags & kIncoming) != 0;
  const bool is_send = (head.flags & kOutgoing) != 0;
  // Nothing can be said any more of a message that was not to be, and of a one-sided transfer.
  const bool is_lost = (head.flags & kCancelled) != 0 || may_have_completed(record) ||
                       (is_receive && pair_low(record.words[0]) == kAnyPeer) ||
                       !(is_collective || is_receive || is_send);
  const int32_t peer = pair_low(record.words[0]);
  const auto operation = static_cast<CollectiveOperation>(pair_high(record.words[0]));
  const bool is_shown =
      is_collective && (head.flags & kFailed) == 0 && communicators_.contains(head.a32);
  const bool is_of_others = is_receive ? peer >= 0 && is_foreign(head.a32, peer)
                                       : is_shown && is_partial(head.a32, operation);
  const uint64_t id = requests_.end(record.words[1], is_lost || is_of_others);
  if (is_lost) {
    ++outcome_->unmatched_count;
    return;
  }
  if (is_receive) {
    emit_message(EventKind::kReceive, time_ns, record, record.words[0], head.a64, id);
    return;
  }
  if (!is_shown) return;
  const LiveRequest collective = {.id = id,
                                  .is_visible = true,
                                  .operation = operation,
                                  .communicator = head.a32,
                                  .root = peer,
                                  .bytes_sent = head.a64,
                                  .bytes_received = record.words[2]};
  emit_collective(EventKind::kCollectiveComplete, collective, time_ns);
}

void EventOrder::emit_completion(const Record& record) {
  const RecordHead& head = record.head;
  const uint64_t time_ns = clock_.to_ns(head.start_ticks);
  const std::optional<LiveRequest> request = requests_.complete(record.words[1]);
  if (!request) {
    emit_end_alone(record, time_ns);
    return;
  }
  if (!request->is_visible) return;
  if (request->is_rma) {
    complete_rma_request(record, *request, time_ns);
    return;
  }
  const bool is_receive = (head.flags & kIncoming) != 0;
  const bool is_collective = !is_receive && (head.flags & kOutgoing) == 0;
  const bool is_cancelled = (head.flags & kCancelled) != 0;
  const bool is_unsure = may_have_completed(record);
  const int32_t told_peer = pair_low(record.words[0]);
  const int32_t peer = is_receive ? rank_in(head.a32, told_peer) : told_peer;
  const bool is_of_another_world = is_receive && peer < 0 && told_peer >= 0;
  const bool is_unknown = is_receive && peer == kAnyPeer;
  if ((is_of_another_world || is_unknown || is_unsure) && !is_cancelled)
    ++outcome_->unmatched_count;
  const bool has_no_end =
      (is_receive && (peer < 0 || is_unsure)) || (is_collective && (head.flags & kFailed) != 0);
  if (is_cancelled || has_no_end) {
    if (is_of_another_world && !is_cancelled) {
      Event& message = append(EventKind::kForeignMessage, time_ns, kUnknownRegion);
      message.bytes = head.a64;
      message.flags = kIncoming;
    }
    Event& event = append(EventKind::kRequestCancelled, time_ns, kUnknownRegion);
    event.flags = head.flags;
    event.peer = is_unsure ? kAnyPeer : peer;
    event.request = request->id;
  } else if (is_receive) {
    emit_message(EventKind::kReceiveComplete, time_ns, record, record.words[0], head.a64,
                 request->id);
  } else if (is_collective) {
    emit_collective(EventKind::kCollectiveComplete, *request, time_ns);
  } else {
    Event& event = append(EventKind::kSendComplete, time_ns, kUnknownRegion);
    event.flags = head.flags & kFailed;
    event.request = request->id;
  }
}

/// A loss is an interval that encloses nothing: it ends where the next record starts. Regions that
/// ended in it are closed before it.
void EventOrder::emit_lost(const Record& record, uint64_t limit_ticks) {
  const uint64_t end = std::clamp(end_ticks(record), record.head.start_ticks,
                                  std::max(record.head.start_ticks, limit_ticks));
  const uint64_t start_ns = std::max(clock_.to_ns(record.head.start_ticks), last_ns_);
  cut_regions(ended_in_hole(record.head.a32), start_ns);
  Event& begin = append(EventKind::kLostBegin, start_ns, record.head.id);
  begin.bytes = record.head.a64;
  begin.request = clock_.to_ns(record.head.start_ticks);
  begin.bytes_received = std::max(clock_.to_ns(end_ticks(record)), begin.request);
  const uint64_t end_ns = std::max(clock_.to_ns(end), start_ns);
  append(EventKind::kLostEnd, end_ns, record.head.id).bytes = record.head.a64;
  push_unseen(begun_in_hole(record.head.a32));
  LossTally& loss = tally_->lost[std::min(record.head.id, kLossReasonCount - 1)];
  loss.count += record.head.a64;
  loss.start_ns = std::min(loss.start_ns, start_ns);
  loss.end_ns = std::max(loss.end_ns, end_ns);
}

}  // namespace aon::writers
