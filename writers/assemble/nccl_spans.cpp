#include "writers/assemble/nccl_spans.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "writers/assemble/nccl_record.h"
#include "writers/assemble/span_window.h"

namespace aon::writers {
namespace {

constexpr size_t kWindow = 8192;  ///< transfers among which the first to begin is looked for

/// The longer of two that begin together encloses the other.
bool begins_before(const NcclSpan& left, const NcclSpan& right) {
  if (left.start_ticks != right.start_ticks) return left.start_ticks < right.start_ticks;
  return left.duration_ticks > right.duration_ticks;
}

/// The events of one communicator of a process.
class NcclTimeline final : public StreamEvents {
 public:
  NcclTimeline(const clock::ClockMap& clock, const std::unordered_map<uint32_t, uint32_t>& regions,
               Outcome* outcome, const Sink& sink)
      : StreamEvents(outcome, sink), outcome_(*outcome), clock_(clock), regions_(regions) {}

  /// `is_alone`: it lies in nothing.
  Status add(const NcclSpan& span, bool is_alone) {
    const uint64_t end_ticks = end_ticks_of(span.start_ticks, span.duration_ticks);
    Open open;
    open.operation = operation_of(span);
    const uint64_t start_ns = clock_.to_ns(span.start_ticks);
    const uint64_t end_ns = std::max(clock_.to_ns(end_ticks), start_ns);
    open.operation.start_ns = start_ns;
    open.operation.end_ns = end_ns;
    if (is_timed(open)) {
      open.operation.gpu_begin_ns = start_ns;
      open.operation.gpu_ns = end_ns - start_ns;
    }
    // The host's times overlap as they like, and push those of the GPU nowhere.
    if (is_timed(open) && !open_.empty() && !is_timed(open_.back())) cut(start_ns);
    const uint64_t overlap_count = outcome_.device_overlap_count;
    open.shown_ns = make_room(start_ns, end_ns, is_alone);
    if (!is_timed(open)) outcome_.device_overlap_count = overlap_count;
    begin(open);
    open_.push_back(open);
    return is_full() ? flush() : Status();
  }

 private:
  struct Open {
    NcclOperation operation;
    uint64_t shown_ns;
  };
  static bool is_timed(const Open& open) { return (open.operation.flags & kNcclGpuTimed) != 0; }

  NcclOperation operation_of(const NcclSpan& span) {
    Record record{};
    record.head = {span.start_ticks,  0,         RecordKind::kNcclCall, kNcclSlots, 0, span.region,
                   span.communicator, span.bytes};
    record.words[0] = span.sequence;
    record.words[1] = span.shape;
    record.words[5] = pack_pair(span.peer, static_cast<int32_t>(span.flags & ~kNcclGpuTimed));
    NcclOperation operation = read_nccl_operation(record, clock_);
    operation.flags = static_cast<uint16_t>(span.flags);
    if (regions_.count(span.region) == 0) operation.region = kUnknownRegion;
    return operation;
  }

  uint64_t keep(const NcclOperation& operation) {
    return reinterpret_cast<uint64_t>(&told_.emplace_back(operation));
  }

  void begin(const Open& open) {
    const NcclOperation& operation = open.operation;
    if (is_timed(open)) {
      Event& work = append(EventKind::kDeviceWork, open.shown_ns, operation.region);
      work.peer = static_cast<int32_t>(DeviceOperation::kOther);
      work.bytes = operation.bytes;
      work.bytes_received = operation.gpu_ns;
      work.set_device_correlation(static_cast<uint32_t>(operation.sequence),
                                  open.shown_ns - operation.start_ns);
    }
    append(EventKind::kNcclBegin, open.shown_ns, operation.region).request = keep(operation);
    if (!is_timed(open)) return;
    Event& enter = append(EventKind::kEnter, open.shown_ns, operation.region);
    if (operation.bytes != 0)
      enter.set_value(static_cast<uint32_t>(ValueType::kUnsigned), operation.bytes);
  }

  void append_end(uint64_t time_ns) override {
    const Open open = open_.back();
    open_.pop_back();
    Event& end = append(EventKind::kNcclEnd, time_ns, open.operation.region);
    end.request = keep(open.operation);
    end.bytes = open.shown_ns;
    if (is_timed(open)) append(EventKind::kLeave, time_ns, open.operation.region);
  }
  void on_flushed() override { told_.clear(); }

  Outcome& outcome_;
  clock::ClockMap::Cursor clock_;
  const std::unordered_map<uint32_t, uint32_t>& regions_;
  std::vector<Open> open_;
  std::deque<NcclOperation> told_;  ///< that events point at
};

}  // namespace

uint64_t NcclSpans::restart() {
  stored_count_ = 0;  // of a communicator without a timeline
  drop();
  is_dropped_ = false;
  window_ticks_ = 0;
  timed_.clear();
  return std::exchange(uncounted_count_, 0);
}

uint64_t NcclSpans::most_count() const {
  return most_sorted(sizeof(NcclSpan), max_file_bytes_, memory_bytes_);
}

void NcclSpans::drop() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = true;
  unsorted_count_ += std::exchange(stored_count_, 0);
}

Status NcclSpans::add(const Record& record) {
  const RecordHead& head = record.head;
  if (head.slot_count != kNcclSlots) return {};
  const auto flags = static_cast<uint32_t>(pair_high(record.words[5]));
  if ((flags & (kNcclGraphCaptured | kNcclInFlight)) != 0) return {};
  // Of what is not counted some ranks are not told: their collectives would match others.
  if ((flags & kNcclUncounted) != 0) {
    ++uncounted_count_;
    return {};
  }
  if (is_dropped_) {
    ++unsorted_count_;
    return {};
  }
  if (!store_) store_.emplace(folder_, memory_bytes_);
  const bool has_room =
      store_->next_file_bytes() <= std::max(store_->file_bytes(), max_file_bytes_);
  if (!has_room || span_end_ticks(record) < window_ticks_) {
    ++left_out_count_;
    return {};
  }
  const bool is_timed = (flags & kNcclGpuTimed) != 0;
  if (is_timed) timed_.insert(head.a32);
  ++stored_count_;
  return store_->add({.start_ticks = is_timed ? record.words[3] : head.start_ticks,
                      .duration_ticks = is_timed ? record.words[4] : duration_ticks(record),
                      .bytes = head.a64,
                      .sequence = record.words[0],
                      .shape = record.words[1],
                      .communicator = head.a32,
                      .region = head.id,
                      .peer = pair_low(record.words[5]),
                      .flags = flags});
}

Result<const NcclSpan*> NcclSpans::next() {
  if (front_ != nullptr) return front_;
  Result<const NcclSpan*> span = reader_->next();
  if (span) front_ = *span;
  return span;
}

Status NcclSpans::replay(uint32_t communicator, const clock::ClockMap& clock,
                         const std::unordered_map<uint32_t, uint32_t>& regions,
                         const std::function<bool(uint32_t)>& is_transfer, Outcome* outcome,
                         const StreamEvents::Sink& sink) {
  if (!store_) return {};
  if (!reader_) {
    Result<Store::Reader> reader = store_->read();
    if (!reader) return reader.error();
    reader_.emplace(std::move(*reader));
  }
  const bool has_timed = timed_.count(communicator) != 0;
  NcclTimeline timeline(clock, regions, outcome, sink);
  std::vector<NcclSpan> transfers;  // in a row, of one kind
  const auto show = [&](size_t count) {
    std::sort(transfers.begin(), transfers.end(), begins_before);
    Status status;
    for (size_t i = 0; i < count && status; ++i) {
      const bool is_timed = (transfers[i].flags & kNcclGpuTimed) != 0;
      status = timeline.add(transfers[i], has_timed && !is_timed);
    }
    transfers.erase(transfers.begin(), transfers.begin() + static_cast<std::ptrdiff_t>(count));
    return status;
  };
  for (;;) {
    const Result<const NcclSpan*> next_span = next();
    if (!next_span) return next_span.error();
    if (*next_span == nullptr || (*next_span)->communicator > communicator) break;
    front_ = nullptr;
    const NcclSpan& span = **next_span;
    --stored_count_;
    if (span.communicator < communicator) continue;
    const bool is_one_of_them = is_transfer(span.region);
    const bool is_other_kind =
        !transfers.empty() && ((transfers.back().flags ^ span.flags) & kNcclGpuTimed) != 0;
    Status status;
    if (!is_one_of_them || is_other_kind) status = show(transfers.size());
    if (status && transfers.size() >= kWindow) status = show(kWindow / 2);
    if (status && is_one_of_them) transfers.push_back(span);
    if (status && !is_one_of_them) status = timeline.add(span, true);
    if (!status) return status;
  }
  Status status = show(transfers.size());
  return status ? timeline.finish() : status;
}

}  // namespace aon::writers
