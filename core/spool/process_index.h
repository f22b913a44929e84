/// Where the blocks of one process stand: one walk over the headers of its segments, then every
/// stream can be read alone. Memory: 56 bytes per block; no descriptor stays open.
/// Owner: the caller; immutable after build(), any thread may read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/spool/files.h"
#include "core/spool/format.h"

namespace aon::spool {

struct BlockEntry {
  uint64_t offset;
  uint64_t first_sequence;
  uint64_t first_ticks;
  uint64_t last_ticks;
  uint32_t file;  ///< index of ProcessIndex::file()
  uint32_t record_count;
  uint32_t counted_count;
  uint32_t raw_bytes;
  uint32_t compressed_bytes;
};

class ProcessIndex {
 public:
  using StreamKey = std::pair<uint16_t, uint16_t>;  ///< slot, context

  /// Scans `segments` (list_segments) of `process` in `folder`.
  /// Errors: kIo; a file that vanished meanwhile (evicted) is left out.
  static Result<ProcessIndex> build(const std::filesystem::path& folder, uint32_t process,
                                    std::span<const SegmentName> segments);

  /// Slots that have blocks, ascending; kSeriesSlot is one of them where there are series.
  std::vector<uint16_t> slots() const;
  /// Blocks of a stream by first_sequence, then as written. Empty when there are none.
  std::span<const BlockEntry> blocks(uint16_t slot, uint16_t context) const;
  const std::string& file(uint32_t index) const { return files_[index]; }
  uint32_t process() const noexcept { return process_; }
  uint64_t damaged_blocks() const noexcept { return damaged_blocks_; }
  /// Smallest start and largest end over all blocks; {0, 0} without any.
  std::pair<uint64_t, uint64_t> tick_range() const noexcept { return {first_ticks_, last_ticks_}; }

 private:
  uint32_t process_ = 0;
  std::vector<std::string> files_;
  std::map<StreamKey, std::vector<BlockEntry>> streams_;
  uint64_t damaged_blocks_ = 0;
  uint64_t first_ticks_ = 0;
  uint64_t last_ticks_ = 0;
};

}  // namespace aon::spool
