/// All records of one location (process, slot) in commit order, over all its segments and both
/// writer contexts, merged by end time. Blocks that were written twice come out once.
///
/// What is missing comes out too, as kLost records in their place: a hole in the sequence numbers
/// is compared with the losses that the agent wrote down (evicted, write failed); the rest is
/// damaged. Hence for one stream: counted records + counts of these = records committed.
/// Records of kind kLost that the writer itself left (pool full) pass through unchanged.
/// Owner: the caller.   Thread: one; readers of different locations are independent.
/// Cost: about 25 ns per record, at most 8 MiB and two descriptors, whatever the length.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/spool/job.h"
#include "core/spool/open_stack.h"
#include "core/spool/process_index.h"

namespace aon::spool {

/// A run of records. `is_resync`: records before it are missing (or it is the first batch), and
/// `open` are the regions open behind the kLost records that tell of the gap, which come first;
/// whatever the reader of the batch thought open is not. Behind the last block nothing says what is
/// open: those have kAllRegions.
struct StreamBatch {
  std::span<const Record> records;
  bool is_resync = false;
  std::span<const OpenRegion> open;
};

/// What the reader itself found missing; sums of the kLost records it made.
struct StreamLosses {
  uint64_t count[kLossReasonCount] = {};
  uint64_t damaged_blocks = 0;
};

class StreamReader {
 public:
  /// `process` gives the known losses and the final counts of the streams; null when there are
  /// none. Index and process must outlive the reader.
  StreamReader(const ProcessIndex& index, const Process* process, uint16_t slot);
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  /// The next batch, valid until the next call; no records at the end.
  /// Errors: kIo only; damage is a kLost record.
  Result<StreamBatch> next();

  const StreamLosses& losses() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aon::spool
