#include "writers/assemble/span_window.h"

#include <fmt/format.h>

#include "core/base/digits.h"
#include "core/spool/stream_reader.h"
#include "writers/assemble/nccl_record.h"
#include "writers/assemble/record_load.h"

namespace aon::writers {
namespace {

/// Ends of spans of one kind, in runs. Its times are ticks.
class SpanLoad {
 public:
  void add(uint64_t end_ticks) {
    last_ticks_ = std::max(last_ticks_, end_ticks);
    if (++run_count_ == kSpanRun) end_run();
  }
  void end_run() {
    if (run_count_ != 0) load_.add(last_ticks_, last_ticks_, run_count_);
    last_ticks_ = run_count_ = 0;
  }
  uint64_t window_start(uint64_t count) const { return load_.window_start(count).latest_ns; }

 private:
  RecordLoad load_;
  uint64_t last_ticks_ = 0;
  uint64_t run_count_ = 0;
};

uint64_t record_count_of(const spool::ProcessIndex& index) {
  uint64_t sum = 0;
  for (const uint16_t slot : index.slots()) {
    for (const uint16_t context : {0, 1}) {
      for (const spool::BlockEntry& block : index.blocks(slot, context)) sum += block.record_count;
    }
  }
  return sum;
}

}  // namespace

std::vector<std::string> left_out_lines(const LeftOutSpans& left_out) {
  constexpr const char* kWhy =
      "sorting them would not fit below --disk; they are in the spool, and aon finalize --disk "
      "SIZE "
      "with a larger one takes them in";
  const std::string host = grouped(left_out.host_count) + " calls and waits for devices";
  std::vector<std::string> lines;
  if (left_out.work_count != 0) {
    lines.push_back(fmt::format(
        "{} kernels, copies, sets and graphs, the oldest, are left out{}: {}",
        grouped(left_out.work_count), left_out.host_count != 0 ? ", and " + host : "", kWhy));
  } else if (left_out.host_count != 0) {
    lines.push_back(fmt::format("{}, the oldest, are left out: {}", host, kWhy));
  }
  if (left_out.nccl_count != 0)
    lines.push_back(
        fmt::format("{} operations of NCCL, the oldest, are left out of the archive's "
                    "timelines: {}",
                    grouped(left_out.nccl_count), kWhy));
  if (left_out.unsorted_count != 0)
    lines.push_back(fmt::format(
        "{} records of work of devices, of calls and waits for it, and of operations "
        "of NCCL are left out: the disk is full, or nearly (2.5 %, at most 512 MiB, are "
        "left to others), and has no room to sort them; they are in the spool, and "
        "aon finalize takes them in when it has",
        grouped(left_out.unsorted_count)));
  return lines;
}

bool is_on_nccl_timeline(const spool::Process& process, const Record& record) {
  return is_nccl_operation(record.head) && process.device_streams.count(record.head.a32) != 0;
}

Result<SpanWindow> find_span_window(const spool::ProcessIndex& index, const spool::Process& process,
                                    const SpanRoom& room, const std::function<void()>& beat) {
  if (record_count_of(index) <= std::min(room.device_count, room.nccl_count)) return SpanWindow();
  SpanLoad devices;
  SpanLoad operations;
  for (const uint16_t slot : index.slots()) {
    if (slot == spool::kSeriesSlot) continue;
    spool::StreamReader reader(index, &process, slot);
    for (uint64_t batches = 0;; ++batches) {
      if (batches % 1024 == 0) beat();
      const Result<spool::StreamBatch> batch = reader.next();
      if (!batch) return batch.error();
      if (batch->records.empty()) break;
      for (const Record& record : batch->records) {
        if (record.head.kind == RecordKind::kDeviceSpan) devices.add(span_end_ticks(record));
        if (is_on_nccl_timeline(process, record)) operations.add(span_end_ticks(record));
      }
    }
    devices.end_run();
    operations.end_run();
  }
  return SpanWindow{devices.window_start(room.device_count),
                    operations.window_start(room.nccl_count)};
}

}  // namespace aon::writers
