// Calls on files -> their events: a transfer begins at entry of the call; it is complete at exit,
// or it is issued there and completed by another call. What failed moved nothing and has no event.

#include "writers/assemble/event_order.h"

namespace aon::writers {
namespace {

struct IoWords {
  IoOperation operation;
  uint32_t flags;
};

IoWords io_words(const Record& record) {
  const auto operation = static_cast<uint32_t>(pair_low(record.words[0]));
  return {static_cast<IoOperation>(operation < kIoOperationCount ? operation : kIoOperationCount),
          static_cast<uint32_t>(pair_high(record.words[0]))};
}

bool is_transfer(IoOperation operation) {
  return operation == IoOperation::kRead || operation == IoOperation::kWrite ||
         operation == IoOperation::kSync;
}

/// Of the file's size, or of how it is used.
bool is_change(IoOperation operation) {
  switch (operation) {
    case IoOperation::kSetSize:
    case IoOperation::kPreallocate:
    case IoOperation::kSetView:
    case IoOperation::kSetAtomicity:
    case IoOperation::kSetInfo:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool is_collective_on_file(const Record& record) {
  if (record.head.kind != RecordKind::kIo) return false;
  const IoWords words = io_words(record);
  if (words.operation == IoOperation::kSeek) return (words.flags & kIoShared) != 0;
  if (words.operation == IoOperation::kOpen || words.operation == IoOperation::kClose) return false;
  return (words.flags & kIoCollective) != 0 && (words.flags & kIoSplitEnd) == 0;
}

bool is_split_end(const Record& record) {
  if (record.head.kind != RecordKind::kIo || (record.head.flags & kOpenAtEnd) != 0) return false;
  return (static_cast<uint32_t>(pair_high(record.words[0])) & kIoSplitEnd) != 0;
}

Event& EventOrder::append_io(EventKind kind, uint64_t time_ns, const Record& record) {
  Event& event = append(kind, time_ns, kUnknownRegion);
  const IoWords words = io_words(record);
  event.communicator = record.head.a32;
  event.peer = static_cast<int32_t>(words.operation);
  event.tag = static_cast<int32_t>(words.flags);
  event.bytes_received = kUnknownOffset;
  return event;
}

void EventOrder::begin_io(const Record& record, uint64_t time_ns) {
  const IoWords words = io_words(record);
  if (!is_transfer(words.operation) || (words.flags & kIoSplitEnd) != 0) return;
  if (!files_.contains(record.head.a32)) return;
  Event& event = append_io(EventKind::kIoBegin, time_ns, record);
  event.bytes = record.words[3];
  event.bytes_received = record.words[1];
  event.request = record.words[2];
}

void EventOrder::end_io(const Record& record, uint64_t time_ns) {
  const IoWords words = io_words(record);
  const bool is_open = files_.contains(record.head.a32);
  if (words.operation == IoOperation::kDelete || (words.flags & kIoDeletes) != 0) {
    if (file_names_.contains(record.head.a32)) append_io(EventKind::kIoDelete, time_ns, record);
  }
  if (!is_open) {  // its definition is lost; of what has a second half that one counts
    const bool is_begun = (words.flags & (kIoNonblocking | kIoSplitBegin)) != 0;
    if (is_transfer(words.operation) && !is_begun && record.head.a32 != 0)
      ++outcome_->unmatched_io_count;
    return;
  }
  if (is_transfer(words.operation)) {
    end_io_call(record, time_ns);
  } else if (words.operation == IoOperation::kOpen) {
    append_io(EventKind::kIoOpen, time_ns, record).bytes = record.words[3];
  } else if (words.operation == IoOperation::kClose) {
    append_io(EventKind::kIoClose, time_ns, record);
  } else if (words.operation == IoOperation::kSeek) {
    Event& event = append_io(EventKind::kIoSeek, time_ns, record);
    event.bytes = record.words[3];
    event.bytes_received = record.words[1];
  } else if (is_change(words.operation)) {
    append_io(EventKind::kIoChange, time_ns, record);
  }
}

/// Of a transfer, or of a half of one.
void EventOrder::end_io_call(const Record& record, uint64_t time_ns) {
  const uint32_t flags = io_words(record).flags;
  const uint64_t request = record.words[2];
  if ((flags & (kIoNonblocking | kIoSplitBegin)) != 0) {
    open_io_->begin(request);
    append_io(EventKind::kIoIssued, time_ns, record).request = request;
    return;
  }
  if ((flags & kIoSplitEnd) != 0) open_io_->end(request);
  const bool has_moved = (record.head.flags & kFailed) == 0;
  Event& event =
      append_io(has_moved ? EventKind::kIoComplete : EventKind::kIoCancelled, time_ns, record);
  event.bytes = has_moved ? record.head.a64 : 0;
  event.request = request;
}

/// The start may be on another thread: this end is true all the same.
void EventOrder::emit_io_completion(const Record& record) {
  const RecordHead& head = record.head;
  if (!files_.contains(head.a32)) {
    if (head.a32 != 0) ++outcome_->unmatched_io_count;
    return;
  }
  const uint64_t request = record.words[1];
  open_io_->end(request);
  const bool has_moved = (head.flags & (kCancelled | kFailed)) == 0;
  Event& event = append_io(has_moved ? EventKind::kIoComplete : EventKind::kIoCancelled,
                           clock_.to_ns(head.start_ticks), record);
  event.bytes = has_moved ? head.a64 : 0;
  event.request = request;
}

}  // namespace aon::writers
