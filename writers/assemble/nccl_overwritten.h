/// Operations of NCCL that a process told with the GPU's times of later ones, and said so once it
/// had seen that (aon/nccl.h). What says it comes behind their records, so it is looked for in all
/// streams of the process before these are read; then they lose those times.
/// Owner: EventPass.   Thread: one.   Cost: of processes that asked NCCL for the GPU's times: their
/// records are decoded once more; a search per operation where there is anything to take away.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/spool/process_index.h"
#include "writers/writer.h"

namespace aon::writers {

class NcclOverwritten {
 public:
  static constexpr size_t kMaxRanges = 1u << 20;  ///< of a process; more are damage

  void clear() { ranges_.clear(); }
  /// Looks through the streams of a process.   Errors: kIo.
  Status find(const spool::ProcessIndex& index, const spool::Process& process,
              const std::function<void()>& beat);
  void add(const Record& record);
  /// No more is added.
  void sort();
  /// The records, without those times; valid until the next call.
  std::span<const Record> correct(std::span<const Record> records);

 private:
  struct Range {
    uint32_t communicator;
    uint32_t first;  ///< low halves of counts of calls
    uint32_t last;
  };
  bool has(uint32_t communicator, uint32_t call) const;

  std::vector<Range> ranges_;  ///< sorted; of one communicator they do not overlap
  std::vector<Record> corrected_;
};

}  // namespace aon::writers
