/// One stream on its way from staging to blocks: what was taken from staging and not yet encoded,
/// the open regions, and the counts of StreamDefinition.
///
/// Records are untrusted: an entry whose records do not validate is encoded up to that place and
/// the rest of it is counted as cut, beside `committed`: sequence numbers leave no hole.
/// Thread: the encode thread.   Cost: about 2 ns per record besides the encoder.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/agent/state.h"
#include "core/spool/block_writer.h"
#include "core/spool/open_stack.h"

namespace aon::agent {

/// What the records of a process cost it, for the budget: filled by the encode thread, taken by the
/// housekeeping thread once a second.
struct Activity {
  std::atomic<uint64_t> kind_count[kRecordKindCount];
  std::atomic<uint64_t> site_count[kMaxSites];  ///< calls, and records of steps of NCCL's proxy

  /// Adds a block's records of one shape. The encode thread's.
  void add(const spool::ShapeCount& shape) noexcept;
};

/// Records in one piece, in staging or in a buffer of ours, that stay where they are until the next
/// commit.
struct RecordRun {
  const uint8_t* bytes;
  uint32_t byte_count;
  uint32_t counted;  ///< as the writer says
};

class StreamLog {
 public:
  StreamLog(uint32_t process, uint16_t slot, uint16_t context, const StreamProgress& progress)
      : process_(process), slot_(slot), context_(context), progress_(progress) {}

  void push(const RecordRun& run) {
    pending_.push_back(run);
    pending_bytes_ += run.byte_count;
  }
  bool is_pending() const noexcept { return !pending_.empty(); }
  uint64_t pending_bytes() const noexcept { return pending_bytes_; }

  /// Fills one block from what is pending. `activity` may be null.
  Result<spool::BlockHeader> seal_block(spool::RecordBlockWriter* writer, Activity* activity,
                                        uint64_t block_sequence, std::vector<uint8_t>* out);

  /// Counts all that is pending as write failed (no file can take it).
  void drop_pending();
  /// Counts a block that could not be written.
  void add_failed(const spool::BlockHeader& header) noexcept;
  /// The losses of add_failed() since the last call of clear_failed().
  std::vector<LossDefinition> failed() const;
  void clear_failed() noexcept {
    progress_.failed_range_count = 0;
    is_changed = true;
  }
  bool has_failed() const noexcept { return progress_.failed_range_count != 0; }

  StreamDefinition definition() const noexcept;

  uint32_t process() const noexcept { return process_; }
  uint16_t slot() const noexcept { return slot_; }
  uint16_t context() const noexcept { return context_; }
  StreamProgress& progress() noexcept { return progress_; }
  const StreamProgress& progress() const noexcept { return progress_; }
  spool::OpenStack& open() noexcept { return open_; }

  bool is_changed = false;  ///< since the last commit

 private:
  /// Looks at the core's own records among these.
  void observe_core_records(std::span<const uint8_t> bytes) noexcept;
  void observe_core_record(const RecordHead& head) noexcept;
  void end_run(const RecordRun& run);

  uint32_t process_;
  uint16_t slot_;
  uint16_t context_;
  StreamProgress progress_;
  spool::OpenStack open_;
  std::deque<RecordRun> pending_;
  uint64_t pending_bytes_ = 0;
  uint32_t run_taken_bytes_ = 0;    ///< of pending_.front()
  uint32_t run_taken_counted_ = 0;  ///< of pending_.front()
};

}  // namespace aon::agent
