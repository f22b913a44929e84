#include "core/agent/stream_log.h"

#include <aon/nccl.h>

#include <algorithm>
#include <cstring>

namespace aon::agent {

Result<spool::BlockHeader> StreamLog::seal_block(spool::RecordBlockWriter* writer,
                                                 Activity* activity, uint64_t block_sequence,
                                                 std::vector<uint8_t>* out) {
  const uint64_t first_sequence = progress_.committed;
  writer->begin(process_, slot_, context_, first_sequence, &open_);
  uint32_t counted_before = 0;
  uint32_t records_before = 0;
  bool is_cut = false;
  while (!pending_.empty() && !is_cut && !writer->is_full()) {
    const RecordRun& run = pending_.front();
    const std::span<const uint8_t> rest(run.bytes + run_taken_bytes_,
                                        run.byte_count - run_taken_bytes_);
    bool refused = false;
    const size_t taken = writer->add(rest, &refused);
    const uint32_t counted = writer->summary().counted_count - counted_before;
    const uint32_t records = writer->summary().record_count - records_before;
    counted_before += counted;
    records_before += records;
    if (records != counted) observe_core_records(rest.first(taken));
    run_taken_bytes_ += static_cast<uint32_t>(taken);
    run_taken_counted_ += counted;
    progress_.committed += counted;
    const bool is_whole = run_taken_bytes_ == run.byte_count;
    if (!is_whole && !refused && writer->is_full()) break;
    // Nothing taken and no room lacking: a record that is cut off.
    is_cut = run_taken_counted_ != run.counted;
    end_run(run);
  }
  is_changed = true;
  progress_.open_count = open_.regions().size();
  if (activity != nullptr) {
    writer->visit_shapes([=](const spool::ShapeCount& shape) { activity->add(shape); });
  }
  return writer->seal(block_sequence, out);
}

void StreamLog::end_run(const RecordRun& run) {
  if (run.counted > run_taken_counted_) progress_.stream_cut += run.counted - run_taken_counted_;
  pending_bytes_ -= run.byte_count;
  pending_.pop_front();
  run_taken_bytes_ = 0;
  run_taken_counted_ = 0;
}

void Activity::add(const spool::ShapeCount& shape) noexcept {
  // One writer: a plain sum is enough, and cheaper than an atomic one.
  const auto add_to = [&shape](std::atomic<uint64_t>& count) {
    count.store(count.load(std::memory_order_relaxed) + shape.record_count,
                std::memory_order_relaxed);
  };
  add_to(kind_count[static_cast<size_t>(shape.kind)]);
  const bool is_steps = shape.kind == RecordKind::kNcclCall && shape.id == kNcclStepSite;
  if (shape.id < kMaxSites && (is_call(shape.kind) || is_steps)) add_to(site_count[shape.id]);
}

void StreamLog::observe_core_records(std::span<const uint8_t> bytes) noexcept {
  for (size_t at = 0; at < bytes.size();) {
    RecordHead head;
    std::memcpy(&head, bytes.data() + at, sizeof(head));
    at += size_t{head.slot_count} * kSlotBytes;
    if (!is_counted(head.kind)) observe_core_record(head);
  }
}

void StreamLog::observe_core_record(const RecordHead& head) noexcept {
  if (head.kind == RecordKind::kThread && head.a32 == 1) {
    progress_.tid = static_cast<int32_t>(head.id);
    ++progress_.thread_count;
  }
  if (head.kind != RecordKind::kLost) return;
  const uint64_t end = head.start_ticks + head.duration_ticks;
  if (progress_.first_refused_ticks == 0 || head.start_ticks < progress_.first_refused_ticks)
    progress_.first_refused_ticks = head.start_ticks;
  progress_.last_refused_ticks = std::max(progress_.last_refused_ticks, end);
}

void StreamLog::drop_pending() {
  while (!pending_.empty()) {
    spool::BlockHeader header{};
    header.first_sequence = progress_.committed;
    header.counted_count = pending_.front().counted - run_taken_counted_;
    progress_.committed += header.counted_count;
    add_failed(header);
    pending_.pop_front();
    run_taken_bytes_ = 0;
    run_taken_counted_ = 0;
  }
  pending_bytes_ = 0;
}

void StreamLog::add_failed(const spool::BlockHeader& header) noexcept {
  if (header.counted_count == 0) return;
  is_changed = true;
  uint64_t& range_count = progress_.failed_range_count;
  if (range_count != 0) {
    FailedRange& last = progress_.failed[range_count - 1];
    const bool follows = last.first_sequence + last.count == header.first_sequence;
    if (follows || range_count == kMaxFailedRanges) {
      last.count += header.counted_count;
      last.last_ticks = std::max(last.last_ticks, header.last_ticks);  // 0: not known
      return;
    }
  }
  progress_.failed[range_count++] = {header.first_sequence, header.counted_count,
                                     header.first_ticks, header.last_ticks};
}

std::vector<LossDefinition> StreamLog::failed() const {
  std::vector<LossDefinition> losses;
  for (uint64_t i = 0; i < progress_.failed_range_count; ++i) {
    const FailedRange& range = progress_.failed[i];
    LossDefinition loss{};
    loss.process = process_;
    loss.slot = slot_;
    loss.context = context_;
    loss.reason = static_cast<uint32_t>(LossReason::kWriteFailed);
    loss.first_sequence = range.first_sequence;
    loss.count = range.count;
    loss.start_ticks = range.first_ticks;
    loss.end_ticks = range.last_ticks;
    losses.push_back(loss);
  }
  return losses;
}

StreamDefinition StreamLog::definition() const noexcept {
  StreamDefinition definition{};
  definition.process = process_;
  definition.slot = slot_;
  definition.context = context_;
  definition.tid = progress_.tid;
  definition.thread_count = progress_.thread_count;
  definition.committed = progress_.committed;
  definition.refused = progress_.refused;
  definition.stream_cut = progress_.stream_cut + progress_.ring_cut;
  definition.first_refused_ticks = progress_.first_refused_ticks;
  definition.last_refused_ticks = progress_.last_refused_ticks;
  return definition;
}

}  // namespace aon::agent
