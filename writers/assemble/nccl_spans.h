/// Operations of NCCL as work of their communicator's timeline: in, in any order, from the records
/// of whoever told them; out for one communicator of a process after the other, in time order.
///
///     timed on the GPU: kDeviceWork, kNcclBegin, kEnter ... kNcclEnd, kLeave
///     else (level api): kNcclBegin ... kNcclEnd, from the call to the end of its launch
///
/// Collectives come in the order of their calls, which is that of all members, so that they match
/// across processes whatever is known of each. The host's times lie between those of the GPU, and
/// push none: where there is no room, in no time at all. Transfers of one kernel run side by side
/// and may lie in each other; a collective lies in nothing.
/// Owner: EventPass.   Thread: one.   Cost: a sort; memory at most kMemoryBytes, then a temporary
/// file of at most what is allowed: only the newest of a process are shown then (SpanWindow), the
/// others counted.
#pragma once

#include <aon/record.h>

#include <filesystem>
#include <optional>
#include <unordered_set>

#include "core/clock/clock_map.h"
#include "writers/assemble/stream_events.h"
#include "writers/waits/sorted_store.h"
#include "writers/writer.h"

namespace aon::writers {

/// What a kNcclCall record says, without what no timeline shows.
struct NcclSpan {
  uint64_t start_ticks;
  uint64_t duration_ticks;
  uint64_t bytes;
  uint64_t sequence;
  uint64_t shape;  ///< word 1 of the record
  uint32_t communicator;
  uint32_t region;
  int32_t peer;
  uint32_t flags;  ///< high half of word 5. kNcclGpuTimed: the times are the GPU's

  uint64_t call() const { return (shape & UINT32_MAX) | uint64_t{flags} >> 16 << 32; }
  bool operator<(const NcclSpan& other) const {
    if (communicator != other.communicator) return communicator < other.communicator;
    if (call() != other.call()) return call() < other.call();
    return start_ticks < other.start_ticks;
  }
};

class NcclSpans {
 public:
  static constexpr size_t kMemoryBytes = 8u << 20;

  explicit NcclSpans(std::filesystem::path folder, uint64_t max_file_bytes = UINT64_MAX,
                     size_t memory_bytes = kMemoryBytes)
      : folder_(std::move(folder)), max_file_bytes_(max_file_bytes), memory_bytes_(memory_bytes) {}

  /// Forgets all; the next process begins. Returns how many launches by graphs were not shown, for
  /// NCCL does not tell all ranks of them.
  uint64_t restart();
  /// How many of a process there is room for.
  uint64_t most_count() const;
  /// What ends before `first_ticks` is left out, until restart().
  void begin_window(uint64_t first_ticks) { window_ticks_ = first_ticks; }
  /// Takes a record that is_nccl_operation(), of a communicator that has a timeline.
  Status add(const Record& record);
  /// Leaves out all of the process that is not shown yet, for its store has failed.
  void drop();
  uint64_t left_out_count() const { return left_out_count_; }  ///< of all processes
  uint64_t unsorted_count() const { return unsorted_count_; }  ///< the same, by drop()

  /// The events of `communicator`. They come in ascending order, after the last add(). `regions`:
  /// of the process, whose region has to do with transfers when `is_transfer(local id)`.
  Status replay(uint32_t communicator, const clock::ClockMap& clock,
                const std::unordered_map<uint32_t, uint32_t>& regions,
                const std::function<bool(uint32_t)>& is_transfer, Outcome* outcome,
                const StreamEvents::Sink& sink);

 private:
  using Store = SortedStore<NcclSpan>;

  Result<const NcclSpan*> next();

  std::filesystem::path folder_;
  uint64_t max_file_bytes_;
  size_t memory_bytes_;
  std::optional<Store> store_;  ///< made with the first span
  std::optional<Store::Reader> reader_;
  const NcclSpan* front_ = nullptr;  ///< of the reader, not yet replayed
  bool is_dropped_ = false;
  uint64_t window_ticks_ = 0;
  uint64_t stored_count_ = 0;  ///< and not replayed
  uint64_t left_out_count_ = 0;
  uint64_t unsorted_count_ = 0;
  uint64_t uncounted_count_ = 0;
  std::unordered_set<uint32_t> timed_;  ///< communicators with times on the GPU
};

}  // namespace aon::writers
