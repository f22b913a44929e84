/// Operations of NCCL over all locations: the rows of /nccl in profile.h5.
///
/// Histograms, by communicator, function and size, count every operation, also those whose records
/// were refused: the process tells their sums. Of others without a record only the number is known,
/// from the gaps in the numbers of their calls.
///
/// At most kMaxOperationRows single ones have rows. Where there are more, every second operation is
/// left out, then every second one of the rest, and so on, by a hash of its communicator, function
/// (of a transfer the pair) and sequence. These are the same on all ranks: an operation has the
/// rows of all its members or none, and no rank, communicator or time of the job is preferred.
/// Operations that never ended (in flight) are not thinned out; they stand behind the others of
/// their process. Of those whose end alone is not known (EndedKernels) only the number is. Shares
/// thin out by what they have saved: no more than the whole job needs.
///
/// Thread: one.   Cost: a hash per operation, two where its time comes later; at most 60 MiB of
/// rows, and a histogram per communicator, function and power of two.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "writers/devices/nccl_kernels.h"
#include "writers/nccl/ended_kernels.h"
#include "writers/nccl/in_flight.h"
#include "writers/profile/local_ids.h"
#include "writers/profile/profile.h"
#include "writers/writer.h"

namespace aon::writers::nccl {

constexpr size_t kMaxOperationRows = 1u << 19;

/// A kept operation, with global ids.
struct OperationRow {
  uint32_t group;
  uint32_t level;  ///< it is left out where OperationTable::thinning() is above that
  NcclOperation operation;
  uint64_t wait_ns = kNoWait;
  static constexpr uint64_t kNoWait = UINT64_MAX;  ///< not known
};

/// What a process waited for others in an operation of which all members are known (lateness.h).
struct OperationWait {
  uint32_t group;
  uint32_t communicator;  ///< global
  uint32_t region;        ///< global
  int32_t peer;           ///< of a transfer
  uint64_t sequence;
  uint64_t wait_ns;
};

struct Histogram {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t host_ns = 0;      ///< from the call to the last event
  uint64_t timed_count = 0;  ///< whose time on the GPU is known; below, of these
  uint64_t timed_bytes = 0;
  uint64_t gpu_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  std::array<uint64_t, profile::kHistogramBuckets> by_duration{};  ///< as of RegionStatistics
};

/// Communicator and region by global id (kNone: not known), and the floor of log2 of the bytes.
using HistogramKey = std::tuple<uint32_t, uint32_t, uint32_t>;

class OperationTable {
 public:
  /// `model` (null: no operation is a transfer) outlives it.
  explicit OperationTable(const Model* model = nullptr);
  /// The operations that follow are those of `group`.
  void begin(const Group& group);
  void add(const NcclOperation& operation);
  /// The time on the GPU of an operation of the group that was added, where NCCL did not tell it:
  /// that of its kernel, if no other operation shares it.
  void add_time(const devices::TimedOperation& operation);
  /// When all operations with times have come.
  void add_wait(const OperationWait& wait);
  /// No more come: those that never ended have rows, too.
  void finish() { end_group(); }

  const std::vector<OperationRow>& rows() const { return rows_; }
  const std::map<HistogramKey, Histogram>& histograms() const { return histograms_; }
  uint64_t left_out_count() const { return left_out_count_; }
  /// One operation in 2^n has rows.
  uint32_t thinning() const { return thinning_; }
  /// Operations of which nothing is known, or of which only the end is not: records were lost
  /// behind the ring, or a pause had none made. Those after a member's last known one are not seen
  /// to miss.
  uint64_t missing_count() const { return missing_count_; }
  bool is_empty() const { return histograms_.empty(); }

  void save(StateOut* out);
  Status load(const Model& model, StateIn* in);

 private:
  /// Of a communicator (local) of the group.
  struct Calls {
    uint64_t told_count = 0;   ///< by records and sums
    uint64_t known_count = 0;  ///< by the highest number
  };
  void add_refused();
  OperationRow* row_of(uint32_t communicator, uint64_t call);
  using WaitKey = std::tuple<uint32_t, uint32_t, uint32_t, uint64_t, int32_t>;
  WaitKey wait_key_of(const OperationRow& row) const;
  bool is_told_by_sums(const NcclOperation& operation);
  void end_group();
  void note_call(const NcclOperation& operation);
  void append(const NcclOperation& operation);
  uint32_t level_of(const NcclOperation& global, uint32_t communicator) const;
  void keep(const OperationRow& row, uint32_t communicator);
  void thin_out(uint32_t thinning);

  static constexpr uint32_t kInFlightLevel = 64;

  uint32_t send_ = UINT32_MAX;  ///< region
  uint32_t receive_ = UINT32_MAX;
  const Group* group_ = nullptr;
  InFlight in_flight_;
  EndedKernels ended_kernels_;  ///< of the group
  profile::LocalIds communicators_;
  profile::LocalIds regions_;
  std::vector<OperationRow> rows_;
  size_t first_row_ = 0;  ///< of the group
  /// From there on, the communicator (local): ranks of one process may be members of one.
  std::vector<uint32_t> row_communicators_;
  /// Rows of the group in order of that and of the call; filled when a time is told.
  std::vector<uint32_t> rows_by_call_;
  /// Rows with times in order of their WaitKey; filled when the first wait comes.
  std::vector<uint32_t> rows_by_wait_;
  bool is_sorted_by_wait_ = false;
  uint32_t thinning_ = 0;
  size_t kept_count_ = 0;                              ///< rows, saved ones as well
  std::array<size_t, kInFlightLevel + 1> by_level_{};  ///< of these
  std::map<HistogramKey, Histogram> histograms_;
  uint64_t left_out_count_ = 0;
  std::unordered_map<uint32_t, Calls> calls_;
  std::unordered_map<uint32_t, uint32_t> ranks_;  ///< of the group, by communicator (local)
  /// Of the refused ones of the group, those whose record in flight was taken.
  std::map<InFlight::Key, uint64_t> ended_;
  uint64_t missing_count_ = 0;
};

/// What people should know of rows that are missing; "" where none is.
std::string left_out_text(const OperationTable& operations);

/// floor(log2), 0 for 0 and 1.
constexpr uint32_t log2_of(uint64_t bytes) {
  return bytes < 2 ? 0 : 63 - static_cast<uint32_t>(__builtin_clzll(bytes));
}

}  // namespace aon::writers::nccl
