// Records of one-sided communication -> events, as Score-P has them: a transfer stands at the entry
// of its call, and what a call has completed or synchronized at its exit.

#include "writers/assemble/event_order.h"

namespace aon::writers {
namespace {

RmaOperation operation_of(const Record& record) {
  return static_cast<RmaOperation>(pair_high(record.words[0]));
}

bool is_known_operation(const Record& record) {
  const int32_t operation = pair_high(record.words[0]);
  return operation >= 0 && operation < kRmaOperationCount;
}

bool is_transfer(RmaOperation operation) { return operation <= RmaOperation::kCompareAndSwap; }

bool is_collective(RmaOperation operation) {
  return (operation >= RmaOperation::kCreate && operation <= RmaOperation::kFence) ||
         operation == RmaOperation::kSetInfo;
}

/// The result is with the origin, so what completes there is complete at the target.
bool has_result(RmaOperation operation) {
  return operation == RmaOperation::kGet || operation == RmaOperation::kGetAccumulate;
}

enum class Completes { kNothing, kLocally, kRemotely };

Completes completes(RmaOperation operation) {
  switch (operation) {
    case RmaOperation::kFree:
    case RmaOperation::kFreeAllocated:
    case RmaOperation::kFence:
    case RmaOperation::kComplete:
    case RmaOperation::kUnlock:
    case RmaOperation::kUnlockAll:
    case RmaOperation::kFlush:
    case RmaOperation::kFlushAll:
      return Completes::kRemotely;
    case RmaOperation::kFlushLocal:
    case RmaOperation::kFlushLocalAll:
      return Completes::kLocally;
    default:
      return Completes::kNothing;
  }
}

}  // namespace

bool is_numbered_on_window(const Record& record) {
  if (record.head.kind != RecordKind::kRma) return false;
  const RmaOperation operation = operation_of(record);
  return operation == RmaOperation::kFence || operation == RmaOperation::kSetInfo;
}

Event& EventOrder::append_rma(EventKind kind, uint64_t time_ns, const Record& record) {
  Event& event = append(kind, time_ns, record.head.id);
  event.communicator = record.head.a32;
  event.peer = pair_low(record.words[0]);
  event.tag = pair_high(record.words[0]);
  return event;
}

void EventOrder::begin_rma(const Record& record, uint64_t time_ns) {
  const bool is_known = is_known_operation(record) && windows_.contains(record.head.a32);
  if (!is_known) ++outcome_->unmatched_count;
  const bool has_request = (record.head.flags & kNonblocking) != 0;
  if (has_request || (is_known && is_transfer(operation_of(record)))) {
    emit_transfer(record, time_ns, is_known && is_transfer(operation_of(record)));
  } else if (is_known && is_collective(operation_of(record))) {
    append_rma(EventKind::kRmaCollectiveBegin, time_ns, record);
  }
}

/// A transfer to MPI_PROC_NULL or in an unknown window makes no event; its request is followed, so
/// that its end makes none either.
void EventOrder::emit_transfer(const Record& record, uint64_t time_ns, bool is_known) {
  const uint32_t window = record.head.a32;
  const int32_t target = pair_low(record.words[0]);
  const bool is_visible = is_known && target >= 0;
  uint64_t id = 0;
  if ((record.head.flags & kNonblocking) != 0) {
    id = requests_.start(record.words[2], {.id = 0,
                                           .is_visible = is_visible,
                                           .operation = CollectiveOperation::kOther,
                                           .communicator = window,
                                           .root = target,
                                           .bytes_sent = record.head.a64,
                                           .bytes_received = record.words[1],
                                           .is_rma = true});
    if (is_visible && !has_result(operation_of(record))) {
      transfers_.add_request(window, target, id);
    }
  } else if (is_visible) {
    PendingTransfers::Target* pending = transfers_.find(window, target);
    if (pending == nullptr) {
      ++outcome_->unmatched_count;
      id = requests_.new_id();
    } else {
      if (!pending->has_shared) pending->shared_id = requests_.new_id();
      pending->has_shared = pending->is_local_pending = true;
      id = pending->shared_id;
    }
  }
  if (!is_visible) return;
  Event& event = append_rma(EventKind::kRmaTransfer, time_ns, record);
  event.bytes = record.head.a64;
  event.bytes_received = record.words[1];
  event.request = id;
}

void EventOrder::complete_transfers(const Record& record, uint64_t time_ns) {
  const uint32_t window = record.head.a32;
  const int32_t target = pair_low(record.words[0]);
  if (target == kNoPeer) return;
  const auto tell = [&](EventKind kind, uint64_t id) {
    append_rma(kind, time_ns, record).request = id;
  };
  if (completes(operation_of(record)) == Completes::kLocally) {
    transfers_.for_each(window, target, [&](PendingTransfers::Target& pending) {
      if (pending.is_local_pending) tell(EventKind::kRmaLocalComplete, pending.shared_id);
      pending.is_local_pending = false;
    });
  } else if (completes(operation_of(record)) == Completes::kRemotely) {
    transfers_.for_each(window, target, [&](const PendingTransfers::Target& pending) {
      if (pending.has_shared) tell(EventKind::kRmaRemoteComplete, pending.shared_id);
      for (const uint64_t id : pending.requests) tell(EventKind::kRmaRemoteComplete, id);
    });
    transfers_.remove(window, target);
  }
}

void EventOrder::end_rma(const Record& record, uint64_t time_ns) {
  if ((record.head.flags & kNonblocking) != 0) return;
  if (!is_known_operation(record) || !windows_.contains(record.head.a32)) return;
  complete_transfers(record, time_ns);
  switch (operation_of(record)) {
    case RmaOperation::kCreate:
    case RmaOperation::kCreateAllocated:
      append_rma(EventKind::kRmaWindowCreate, time_ns, record);
      break;
    case RmaOperation::kFree:
    case RmaOperation::kFreeAllocated:
      append_rma(EventKind::kRmaWindowDestroy, time_ns, record);
      break;
    case RmaOperation::kStart:
    case RmaOperation::kComplete:
    case RmaOperation::kPost:
    case RmaOperation::kWait:
    case RmaOperation::kTest: {
      const auto group = static_cast<uint32_t>(record.words[2]);
      append_rma(EventKind::kRmaGroupSync, time_ns, record).request =
          rank_groups_.contains(group) ? group : 0;
      break;
    }
    case RmaOperation::kLockExclusive:
    case RmaOperation::kLockShared:
      if (pair_low(record.words[0]) == kNoPeer) break;
      [[fallthrough]];
    case RmaOperation::kLockAll:
      append_rma(EventKind::kRmaLock, time_ns, record);
      break;
    case RmaOperation::kUnlock:
      if (pair_low(record.words[0]) == kNoPeer) break;
      [[fallthrough]];
    case RmaOperation::kUnlockAll:
      append_rma(EventKind::kRmaUnlock, time_ns, record);
      break;
    case RmaOperation::kSync:
      append_rma(EventKind::kRmaSync, time_ns, record);
      break;
    default:
      break;
  }
  if (is_collective(operation_of(record))) {
    append_rma(EventKind::kRmaCollectiveEnd, time_ns, record);
  }
}

void EventOrder::complete_rma_request(const Record& record, const LiveRequest& request,
                                      uint64_t time_ns) {
  Event& event = append(EventKind::kRmaRequestComplete, time_ns, kUnknownRegion);
  event.communicator = request.communicator;
  event.peer = request.root;
  event.tag = pair_high(record.words[0]);
  event.request = request.id;
}

}  // namespace aon::writers
