/// When how many records were written, and where a part of the time begins that has no more than a
/// given number of them.
/// Owner: the assembler.   Thread: one.   Cost: headers tell it but for where a window begins; for
/// that the blocks in which it may begin are decoded, twice: about two of each stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"

namespace aon::writers {

struct JobModel;

/// Runs of records, by the times at which the first and the last of them end.
class RecordLoad {
 public:
  void add(uint64_t begin_ns, uint64_t end_ns, uint64_t record_count) {
    runs_.push_back({begin_ns, end_ns, record_count});
  }
  uint64_t record_count() const noexcept;

  /// Between which times, both included, a window of all records that end in it or later has to
  /// begin, if it is the longest one with at most `record_count` records. From `latest_ns` it has
  /// no more, wherever the records of a run may stand.
  struct Bounds {
    uint64_t earliest_ns;
    uint64_t latest_ns;
  };
  Bounds window_start(uint64_t record_count) const;

 private:
  struct Run {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t record_count;
  };
  uint64_t first_that_fits(uint64_t record_count, uint64_t Run::*time) const;

  std::vector<Run> runs_;
};

/// Start of the longest window up to the end that has at most `record_count` of the records of
/// `parts`, by when they end; 0 when it has all. Blocks that cannot be read count as their headers
/// tell, as if all in them ended last. `beat` is called now and then.   Errors: kIo.
Result<uint64_t> window_start_ns(const JobModel& parts, uint64_t record_count,
                                 const std::function<void()>& beat);

}  // namespace aon::writers
