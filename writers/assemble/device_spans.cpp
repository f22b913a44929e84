#include "writers/assemble/device_spans.h"

#include <algorithm>
#include <utility>

namespace aon::writers {
namespace {

class DeviceTimeline final : public StreamEvents {
 public:
  DeviceTimeline(const clock::ClockMap& clock,
                 const std::unordered_map<uint32_t, uint32_t>& regions, Outcome* outcome,
                 const Sink& sink)
      : StreamEvents(outcome, sink), clock_(clock), regions_(regions) {}

  Status add(const DeviceSpan& span) {
    const uint64_t start_ns = clock_.to_ns(span.start_ticks);
    // Ticks of a spool are not trusted: a span may pretend to end before it began.
    const uint64_t end_ticks =
        span.start_ticks + std::min(span.duration_ticks, UINT64_MAX - span.start_ticks);
    const uint64_t end_ns = std::max(clock_.to_ns(end_ticks), start_ns);
    const uint64_t shown_ns = make_room(start_ns, end_ns, false);
    const uint32_t region = regions_.count(span.region) != 0 ? span.region : kUnknownRegion;
    Event& work = append(EventKind::kDeviceWork, shown_ns, region);
    work.peer = static_cast<int32_t>(span.operation);
    work.bytes = span.bytes;
    work.bytes_received = end_ns - start_ns;
    work.set_device_correlation(span.correlation, shown_ns - start_ns);
    Event& enter = append(EventKind::kEnter, shown_ns, region);
    if (span.bytes != 0) enter.set_value(static_cast<uint32_t>(ValueType::kUnsigned), span.bytes);
    open_.push_back(region);
    return is_full() ? flush() : Status();
  }

 private:
  void append_end(uint64_t time_ns) override {
    append(EventKind::kLeave, time_ns, open_.back());
    open_.pop_back();
  }

  clock::ClockMap::Cursor clock_;
  const std::unordered_map<uint32_t, uint32_t>& regions_;
  std::vector<uint32_t> open_;  ///< regions
};

DeviceOperation operation_of(const Record& record) {
  const auto value = static_cast<uint8_t>(record.words[0] >> 32);
  return value < kDeviceOperationCount ? static_cast<DeviceOperation>(value)
                                       : DeviceOperation::kOther;
}

}  // namespace

uint64_t DeviceSpans::restart() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = false;
  stored_count_ = 0;
  const uint64_t left_count = std::exchange(added_count_, 0) - std::exchange(replayed_count_, 0);
  return left_count;
}

Status DeviceSpans::add(const Record& record) {
  const RecordHead& head = record.head;
  ++added_count_;
  if (is_dropped_ || head.slot_count < 2) return {};  // damage: nothing is known of it
  if (store_ && store_->next_file_bytes() > std::max(store_->file_bytes(), max_file_bytes_)) {
    added_count_ -= stored_count_;
    left_out_count_ += std::exchange(stored_count_, 0);
    store_.reset();
  }
  if (!store_) store_.emplace(folder_, memory_bytes_);
  ++stored_count_;
  return store_->add({.stream = head.a32,
                      .region = head.id,
                      .start_ticks = head.start_ticks,
                      .duration_ticks = duration_ticks(record),
                      .bytes = head.a64,
                      .correlation = static_cast<uint32_t>(record.words[0]),
                      .operation = operation_of(record)});
}

void DeviceSpans::drop() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = true;
}

Result<const DeviceSpan*> DeviceSpans::next() {
  if (front_ != nullptr) return front_;
  Result<const DeviceSpan*> span = reader_->next();
  if (span) front_ = *span;
  return span;
}

Status DeviceSpans::replay(uint32_t stream, const clock::ClockMap& clock,
                           const std::unordered_map<uint32_t, uint32_t>& regions, Outcome* outcome,
                           const Sink& sink) {
  if (!store_) return {};
  if (!reader_) {
    Result<Store::Reader> reader = store_->read();
    if (!reader) return reader.error();
    reader_.emplace(std::move(*reader));
  }
  DeviceTimeline events(clock, regions, outcome, sink);
  for (;;) {
    const Result<const DeviceSpan*> span = next();
    if (!span) return span.error();
    if (*span == nullptr || (*span)->stream > stream) break;
    front_ = nullptr;
    if ((*span)->stream < stream) continue;  // of no stream that is known
    ++replayed_count_;
    Status status = events.add(**span);
    if (!status) return status;
  }
  return events.finish();
}

}  // namespace aon::writers
