/// The definition file of a node's spool: collects the definitions of each process and of the node,
/// appends them as blocks at every flush, and rewrites the file when superseded ones fill it.
///
/// Some disk behind the end of the file is always set aside, so that a full disk costs events but
/// not the account of what was lost. Definitions that could not be written all the same stay in
/// memory, up to a bound, and are tried again at the next flush; those beyond it are counted.
/// Thread: the encode thread.   Cost: one write per flush.   Errors: errno of a failed write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/agent/file_sink.h"
#include "core/agent/state.h"
#include "core/spool/block_writer.h"

namespace aon::agent {

class DefinitionsLog {
 public:
  DefinitionsLog(State* state, FileSink* sink, uint64_t limit_bytes)
      : state_(state), sink_(sink), limit_bytes_(limit_bytes) {}
  ~DefinitionsLog();
  DefinitionsLog(const DefinitionsLog&) = delete;
  DefinitionsLog& operator=(const DefinitionsLog&) = delete;

  /// Takes over the file in `folder`: cut to the last commit, or continued behind what an earlier
  /// agent left.   Errors: kIo.
  Status restore(const std::string& folder);

  /// The writer that collects for `process` (spool::kNodeProcess: the node).
  spool::DefinitionBlockWriter& of(uint32_t process);
  /// True at the limit, also of what is collected and may not shrink: definitions of processes are
  /// refused then, those of the agent are not.
  bool is_full() const noexcept { return file_bytes_ + collected_bytes() >= limit_bytes_; }

  /// Writes what was collected. 0, or the errno; then everything is kept for the next time.
  int flush();

  /// Drops what flush() could not write; the caller says it again later.
  void discard_buffered() noexcept;

  /// Adds length and block number to the coming commit.
  void stage_commit(Progress* progress) const;

  /// Definitions of `process` that were given up for want of room, since the last call.
  uint64_t take_dropped(uint32_t process);
  /// Definitions of it that were lost on their way here.
  void count_dropped(uint32_t process, uint64_t count) { dropped_[process] += count; }

  /// True when the file should be rewritten without superseded definitions: it has grown much, or
  /// it nears its limit and has grown by an eighth of that since the last time.
  bool wants_compaction() const noexcept {
    const uint64_t near_limit = std::max(limit_bytes_ / 2, compacted_bytes_ + limit_bytes_ / 8);
    return file_bytes_ > std::min(compacted_bytes_ * 4 + kCompactionStepBytes, near_limit);
  }
  /// Rewrites it. Call right after a commit, and commit right after it. Leaves the file as it is on
  /// an error, and waits until it has grown again.
  Status compact(const std::string& folder);

  uint64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  static constexpr uint64_t kCompactionStepBytes = 1u << 20;
  static constexpr uint64_t kReserveBytes = 256u << 10;

  void seal(uint32_t process, spool::DefinitionBlockWriter* writer);
  uint64_t collected_bytes() const noexcept {
    uint64_t bytes = buffer_.size();
    for (const auto& [process, writer] : writers_) bytes += writer.payload_bytes();
    return bytes;
  }
  int open_file(const std::string& name);
  void use(int fd);
  Status rewrite(const std::string& folder);
  void keep_reserve();

  State* state_;
  FileSink* sink_;
  uint64_t limit_bytes_;
  spool::BlockSealer sealer_;
  std::map<uint32_t, spool::DefinitionBlockWriter> writers_;
  std::map<uint32_t, uint64_t> dropped_;
  std::vector<uint8_t> buffer_;
  uint64_t buffered_blocks_ = 0;
  uint64_t file_bytes_ = 0;
  uint64_t reserved_until_ = 0;  ///< offset in the file
  uint64_t compacted_bytes_ = 0;
  uint64_t inode_ = 0;
  uint64_t block_sequence_ = 0;
  int fd_ = -1;
};

}  // namespace aon::agent
