#include "writers/assemble/device_spans.h"

#include <algorithm>
#include <utility>

#include "writers/assemble/span_window.h"
#include "writers/external_id.h"

namespace aon::writers {
namespace {

uint64_t end_ticks_of(const DeviceSpan& span) {
  return writers::end_ticks_of(span.start_ticks, span.duration_ticks);
}

/// Not what the host did.
bool is_work(DeviceOperation operation) {
  return operation == DeviceOperation::kKernel || operation == DeviceOperation::kCopy ||
         operation == DeviceOperation::kSet || operation == DeviceOperation::kGraph;
}

class DeviceTimeline final : public StreamEvents {
 public:
  DeviceTimeline(const clock::ClockMap& clock,
                 const std::unordered_map<uint32_t, uint32_t>& regions, Outcome* outcome,
                 const Sink& sink)
      : StreamEvents(outcome, sink), clock_(clock), regions_(regions) {}

  Status add(const DeviceSpan& span) {
    if (span.is_external_id()) return keep_external_id(span);
    const uint64_t start_ns = clock_.to_ns(span.start_ticks);
    const uint64_t end_ns = std::max(clock_.to_ns(end_ticks_of(span)), start_ns);
    const uint64_t shown_ns = make_room(start_ns, end_ns, false);
    const uint32_t region = regions_.count(span.region) != 0 ? span.region : kUnknownRegion;
    append_external_ids(span, shown_ns);
    Event& work = append(EventKind::kDeviceWork, shown_ns, region);
    work.peer = static_cast<int32_t>(span.operation);
    work.bytes = span.bytes;
    work.bytes_received = end_ns - start_ns;
    if (span.block != 0) {
      work.set_kernel_shape(span.grid, span.block, span.registers, span.shared_bytes);
    } else {
      work.set_device_memory(span.from, span.to);
    }
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

  /// One of each kind: those of a call in the call that begins with it are the same.
  Status keep_external_id(const DeviceSpan& span) {
    if (!external_ids_.empty() && external_ids_.front().start_ticks != span.start_ticks)
      external_ids_.clear();
    const auto is_same = [&](const DeviceSpan& other) { return other.grid == span.grid; };
    if (std::none_of(external_ids_.begin(), external_ids_.end(), is_same))
      external_ids_.push_back(span);
    return {};
  }
  /// Those of a call whose record is lost are of none.
  void append_external_ids(const DeviceSpan& call, uint64_t shown_ns) {
    for (const DeviceSpan& span : external_ids_) {
      if (span.start_ticks != call.start_ticks) break;
      Event& event = append(EventKind::kDeviceWork, shown_ns, kUnknownRegion);
      set_external_id({static_cast<ExternalKind>(span.grid), span.bytes}, &event);
      event.set_device_correlation(span.correlation, 0);
    }
    external_ids_.clear();
  }

  clock::ClockMap::Cursor clock_;
  const std::unordered_map<uint32_t, uint32_t>& regions_;
  std::vector<uint32_t> open_;            ///< regions
  std::vector<DeviceSpan> external_ids_;  ///< of one begin, whose call comes
};

DeviceOperation operation_of(const Record& record) {
  const auto value = static_cast<uint8_t>(record.words[0] >> 32);
  const bool is_external_id =
      value == static_cast<uint8_t>(kExternalIdOperation) && is_external_kind(record.words[2]);
  return value < kDeviceOperationCount || is_external_id ? static_cast<DeviceOperation>(value)
                                                         : DeviceOperation::kOther;
}

DeviceMemory memory_of(uint64_t word) {
  const auto value = static_cast<uint8_t>(word);
  return value < kDeviceMemoryCount ? static_cast<DeviceMemory>(value) : DeviceMemory::kUnknown;
}

uint32_t block_of(const Record& record) {
  const auto x_and_y = static_cast<uint32_t>(record.words[0] >> 40);
  if (operation_of(record) != DeviceOperation::kKernel || (x_and_y & 0xfff) == 0) return 0;
  return x_and_y | static_cast<uint32_t>(record.words[3] >> 24 & 0xff) << 24;
}

}  // namespace

uint64_t DeviceSpans::restart() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = false;
  gap_first_ticks_ = UINT64_MAX;
  window_ticks_ = gap_last_ticks_ = 0;
  gap_counts_.clear();
  const uint64_t left_count = std::exchange(added_count_, 0) - std::exchange(replayed_count_, 0);
  return left_count;
}

void DeviceSpans::leave_out(const DeviceSpan& span) {
  if (!is_work(span.operation)) {
    ++left_out_host_count_;
    return;
  }
  ++left_out_work_count_;
  if (gap_counts_.size() < kMaxGapStreams || gap_counts_.contains(span.stream))
    ++gap_counts_[span.stream];
  gap_first_ticks_ = std::min(gap_first_ticks_, span.start_ticks);
  gap_last_ticks_ = std::max(gap_last_ticks_, end_ticks_of(span));
}

uint64_t DeviceSpans::most_count() const {
  return most_sorted(sizeof(DeviceSpan), max_file_bytes_, memory_bytes_);
}

Status DeviceSpans::put(const DeviceSpan& span) {
  if (is_dropped_) {
    ++unsorted_count_;
    return {};
  }
  if (!store_) store_.emplace(folder_, memory_bytes_);
  const bool has_room =
      store_->next_file_bytes() <= std::max(store_->file_bytes(), max_file_bytes_);
  if (end_ticks_of(span) < window_ticks_ || !has_room) {
    leave_out(span);
    return {};
  }
  ++added_count_;
  return store_->add(span);
}

Status DeviceSpans::add(const Record& record) {
  const RecordHead& head = record.head;
  if (head.slot_count < 2) {  // damage: nothing is known of it
    ++added_count_;
    return {};
  }
  return put({.stream = head.a32,
              .region = head.id,
              .start_ticks = head.start_ticks,
              .duration_ticks = duration_ticks(record),
              .bytes = head.a64,
              .grid = record.words[2],
              .block = block_of(record),
              .shared_bytes = static_cast<uint32_t>(record.words[3] >> 32),
              .correlation = static_cast<uint32_t>(record.words[0]),
              .operation = operation_of(record),
              .from = memory_of(record.words[3]),
              .to = memory_of(record.words[3] >> 8),
              .registers = static_cast<uint8_t>(record.words[3] >> 16)});
}

void DeviceSpans::drop() {
  front_ = nullptr;
  reader_.reset();
  store_.reset();
  is_dropped_ = true;
  unsorted_count_ += std::exchange(added_count_, 0) - std::exchange(replayed_count_, 0);
}

Result<const DeviceSpan*> DeviceSpans::next() {
  if (front_ != nullptr) return front_;
  Result<const DeviceSpan*> span = reader_->next();
  if (span) front_ = *span;
  return span;
}

/// When work of the process was left out, and how much of this stream. Shown up to the first work
/// of the stream.
Status DeviceSpans::put_gap(const clock::ClockMap& clock, uint32_t stream, Outcome* outcome,
                            const Sink& sink) {
  clock::ClockMap::Cursor cursor(clock);
  const uint64_t begin_ns = cursor.to_ns(gap_first_ticks_);
  const uint64_t end_ns = std::max(cursor.to_ns(gap_last_ticks_), begin_ns);
  uint64_t first_ns = end_ns;
  Result<const DeviceSpan*> span = next();
  while (span && *span != nullptr && (*span)->stream < stream) {  // of no stream that is known
    front_ = nullptr;
    span = next();
  }
  if (!span) return span.error();
  if (*span != nullptr && (*span)->stream == stream) first_ns = cursor.to_ns((*span)->start_ticks);
  Event event{};
  event.kind = EventKind::kDeviceGap;
  event.time_ns = std::min(begin_ns, first_ns);
  event.region = kUnknownRegion;
  event.peer = -1;
  event.weight = 1;
  const auto own = gap_counts_.find(stream);
  event.bytes = own == gap_counts_.end() ? 0 : own->second;
  event.bytes_received = std::min(end_ns, first_ns) - event.time_ns;
  event.request = end_ns;
  ++outcome->event_count;
  return sink({&event, 1});
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
  if (!gap_counts_.empty()) {
    if (Status status = put_gap(clock, stream, outcome, sink); !status) return status;
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
