#include "writers/assemble/nccl_spans.h"

#include <deque>
#include <utility>

#include "writers/assemble/nccl_record.h"

namespace aon::writers {
namespace {

/// The events of one communicator of a process.
class NcclTimeline final : public StreamEvents {
 public:
  NcclTimeline(const clock::ClockMap& clock, const std::unordered_map<uint32_t, uint32_t>& regions,
               Outcome* outcome, const Sink& sink)
      : StreamEvents(outcome, sink), clock_(clock), regions_(regions) {}

  Status add(const NcclSpan& span, bool is_transfer) {
    // Ticks of a spool are not trusted: a span may pretend to end before it began.
    const uint64_t end_ticks =
        span.start_ticks + std::min(span.duration_ticks, UINT64_MAX - span.start_ticks);
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
    open.shown_ns = make_room(start_ns, end_ns, !is_transfer);
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
    operation.flags = span.flags;
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

  clock::ClockMap::Cursor clock_;
  const std::unordered_map<uint32_t, uint32_t>& regions_;
  std::vector<Open> open_;
  std::deque<NcclOperation> told_;  ///< that events point at
};

}  // namespace

void NcclSpans::restart() {
  drop();
  is_dropped_ = false;
  stored_count_ = 0;
  timed_.clear();
}

void NcclSpans::drop() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = true;
}

Status NcclSpans::add(const Record& record) {
  const RecordHead& head = record.head;
  if (is_dropped_ || head.slot_count != kNcclSlots) return {};
  const auto flags = static_cast<uint32_t>(pair_high(record.words[5]));
  if ((flags & (kNcclGraphCaptured | kNcclInFlight)) != 0) return {};
  const bool is_timed = (flags & kNcclGpuTimed) != 0;
  if (is_timed) timed_.insert(head.a32);
  if (store_ && store_->next_file_bytes() > std::max(store_->file_bytes(), max_file_bytes_)) {
    left_out_count_ += std::exchange(stored_count_, 0);
    store_.reset();
  }
  if (!store_) store_.emplace(folder_, memory_bytes_);
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
  const bool shows_timed = timed_.count(communicator) != 0;
  Outcome apart;  // the host's times may overlap as they like
  NcclTimeline timeline(clock, regions, shows_timed ? outcome : &apart, sink);
  for (;;) {
    const Result<const NcclSpan*> span = next();
    if (!span) return span.error();
    if (*span == nullptr || (*span)->communicator > communicator) break;
    front_ = nullptr;
    const bool is_timed = ((*span)->flags & kNcclGpuTimed) != 0;
    if ((*span)->communicator < communicator || is_timed != shows_timed) continue;
    Status status = timeline.add(**span, is_transfer((*span)->region));
    if (!status) return status;
  }
  Status status = timeline.finish();
  if (!shows_timed) outcome->event_count += apart.event_count;
  return status;
}

}  // namespace aon::writers
