/// Work of the devices of one process: in, in any order, from the records of whoever told it; out
/// for one stream after the other, in time order, as kDeviceWork, kEnter and kLeave.
///
/// Work that overlaps is shown as StreamEvents says: a stream of CUDA runs one thing after the
/// other, but nodes of a graph may run side by side.
/// Owner: EventPass.   Thread: one.   Cost: a sort; memory at most kMemoryBytes, then a temporary
/// file (SortedStore), which is part of what --disk allows.
#pragma once

#include <aon/device.h>
#include <aon/external_id.h>
#include <aon/record.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/clock/clock_map.h"
#include "writers/assemble/stream_events.h"
#include "writers/waits/sorted_store.h"
#include "writers/writer.h"

namespace aon::writers {

/// What a kDeviceSpan record says, without what no writer wants.
struct DeviceSpan {
  uint32_t stream;
  uint32_t region;
  uint64_t start_ticks;
  uint64_t duration_ticks;
  uint64_t bytes;  ///< of an external id, that
  uint64_t grid;   ///< pack_grid() of a kernel; ExternalKind of an external id
  uint32_t block;  ///< pack_block() of a kernel; 0: not told
  uint32_t shared_bytes;
  uint32_t correlation;
  DeviceOperation operation;
  DeviceMemory from;
  DeviceMemory to;
  uint8_t registers;

  bool is_external_id() const { return operation == kExternalIdOperation; }

  /// The longer of two that begin together encloses the other; ids stand before their calls.
  bool operator<(const DeviceSpan& other) const {
    if (stream != other.stream) return stream < other.stream;
    if (start_ticks != other.start_ticks) return start_ticks < other.start_ticks;
    if (is_external_id() != other.is_external_id()) return is_external_id();
    return duration_ticks > other.duration_ticks;
  }
};

class DeviceSpans {
 public:
  using Sink = StreamEvents::Sink;
  static constexpr size_t kMemoryBytes = 8u << 20;
  static constexpr size_t kSpanBytes = sizeof(DeviceSpan);
  static constexpr size_t kMaxGapStreams = 1u << 16;

  /// The temporary file has at most `max_file_bytes`: what would take it beyond is left out and
  /// counted, as is what lies before the window.
  explicit DeviceSpans(std::filesystem::path folder, uint64_t max_file_bytes = UINT64_MAX,
                       size_t memory_bytes = kMemoryBytes)
      : folder_(std::move(folder)), max_file_bytes_(max_file_bytes), memory_bytes_(memory_bytes) {}

  /// Forgets all; returns how many were in no stream that was replayed, without those left out.
  uint64_t restart();
  /// How many of a process there is room for, calls of CUDA, waits and overhead included.
  uint64_t most_count() const;
  /// What ends before `first_ticks` is left out (SpanWindow); each stream of the process begins
  /// with a kDeviceGap if there was work among that, with the count of its own: of the first
  /// kMaxGapStreams streams. Until restart().
  void begin_window(uint64_t first_ticks) { window_ticks_ = first_ticks; }
  /// Kernels, copies, sets and graphs, of all processes.
  uint64_t left_out_work_count() const { return left_out_work_count_; }
  /// What the host did: calls, waits, overhead.
  uint64_t left_out_host_count() const { return left_out_host_count_; }

  Status add(const Record& record);
  /// Forgets all of the process, for its store has failed.
  void drop();
  /// Of all processes: what drop() left out, of any kind.
  uint64_t unsorted_count() const { return unsorted_count_; }

  /// The events of `stream`. Streams come in ascending order, after the last add().
  Status replay(uint32_t stream, const clock::ClockMap& clock,
                const std::unordered_map<uint32_t, uint32_t>& regions, Outcome* outcome,
                const Sink& sink);

 private:
  using Store = SortedStore<DeviceSpan>;

  Status put(const DeviceSpan& span);
  void leave_out(const DeviceSpan& span);
  Status put_gap(const clock::ClockMap& clock, uint32_t stream, Outcome* outcome, const Sink& sink);
  Result<const DeviceSpan*> next();

  std::filesystem::path folder_;
  uint64_t max_file_bytes_;
  size_t memory_bytes_;
  std::optional<Store> store_;  ///< made with the first span
  std::optional<Store::Reader> reader_;
  const DeviceSpan* front_ = nullptr;  ///< of the reader, not yet replayed
  bool is_dropped_ = false;
  uint64_t added_count_ = 0;  ///< without those left out
  uint64_t left_out_work_count_ = 0;
  uint64_t left_out_host_count_ = 0;
  uint64_t unsorted_count_ = 0;
  uint64_t window_ticks_ = 0;                          ///< of the process, as all below
  std::unordered_map<uint32_t, uint64_t> gap_counts_;  ///< work that was left out, by stream
  uint64_t gap_first_ticks_ = UINT64_MAX;
  uint64_t gap_last_ticks_ = 0;
  uint64_t replayed_count_ = 0;
};

}  // namespace aon::writers
