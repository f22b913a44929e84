/// From when on the work of the devices of a process, and its operations of NCCL, have room to be
/// sorted: of more than that only the newest are. They come in any order and from several threads,
/// so what is the newest is looked for before any of them is taken.
/// Owner: EventPass.   Thread: one.   Cost: of processes with more records than there is room for:
/// their records are decoded once more; 24 bytes per kSpanRun spans.
#pragma once

#include <aon/record.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/spool/process_index.h"
#include "writers/writer.h"

namespace aon::writers {

/// Where the window begins is known to so many spans of each thread that writes them.
constexpr size_t kSpanRun = 256;

/// Those that end at these times or later are in it.
struct SpanWindow {
  uint64_t device_ticks = 0;
  uint64_t nccl_ticks = 0;
};

/// What there was no room to sort: the oldest of each process, or all of it.
struct LeftOutSpans {
  uint64_t work_count = 0;  ///< kernels, copies, sets and graphs
  uint64_t host_count = 0;  ///< calls, waits and overhead beside them
  uint64_t nccl_count = 0;  ///< operations, of timelines
  /// Any of these, of processes whose temporary file failed.
  uint64_t unsorted_count = 0;

  void add(const LeftOutSpans& other) {
    work_count += other.work_count;
    host_count += other.host_count;
    nccl_count += other.nccl_count;
    unsorted_count += other.unsorted_count;
  }
};

/// What people should know of them.
std::vector<std::string> left_out_lines(const LeftOutSpans& left_out);

/// How many there is room for.
struct SpanRoom {
  uint64_t device_count;
  uint64_t nccl_count;
};

/// Ticks of a spool are not trusted: a span may pretend to end before it began.
constexpr uint64_t end_ticks_of(uint64_t start_ticks, uint64_t duration_ticks) {
  return start_ticks + std::min(duration_ticks, UINT64_MAX - start_ticks);
}
constexpr uint64_t span_end_ticks(const Record& record) {
  return end_ticks_of(record.head.start_ticks, duration_ticks(record));
}

/// So many items need no file of more than `max_file_bytes` to be sorted (SortedStore). What has
/// room in the file has not also the memory: whoever sorts them again, joined with others, has as
/// much of the disk per item and not more memory.
constexpr uint64_t most_sorted(size_t item_bytes, uint64_t max_file_bytes, size_t memory_bytes) {
  const uint64_t in_memory = std::max<size_t>(memory_bytes / item_bytes, 1) - 1;
  return std::max<uint64_t>(in_memory, max_file_bytes / item_bytes);
}

/// Whether it is an operation of NCCL that the process has a timeline for.
bool is_on_nccl_timeline(const spool::Process& process, const Record& record);

/// `process` is that of `index`. `beat` is called now and then.   Errors: kIo.
Result<SpanWindow> find_span_window(const spool::ProcessIndex& index, const spool::Process& process,
                                    const SpanRoom& room, const std::function<void()>& beat);

}  // namespace aon::writers
