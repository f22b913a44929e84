/// The records of a block that a ProcessIndex knows, one block at a time.
/// Owner: the caller; the index must outlive it.   Thread: one.   Cost: a pread, a decompression
/// and about 20 ns per record; one descriptor, kept while blocks of one file follow each other.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/spool/block_codec.h"
#include "core/spool/block_reader.h"
#include "core/spool/process_index.h"

namespace aon::spool {

class IndexedBlockReader {
 public:
  explicit IndexedBlockReader(const ProcessIndex& index) : index_(index) {}

  enum class Opened : uint8_t { kYes, kDamaged, kGone };  ///< kGone: its file was evicted meanwhile
  /// Reads the payload. Errors: kIo.
  Result<Opened> open(const BlockEntry& block);

  /// Of the block that open() has opened, as BlockDecoder has them.
  Result<size_t> next(std::span<Record> out) { return decoder_.next(out); }
  std::span<const OpenRegion> open_regions() const { return decoder_.open_regions(); }

 private:
  const ProcessIndex& index_;
  UniqueFd fd_;
  std::optional<uint32_t> file_;
  PayloadReader payload_reader_;
  BlockDecoder decoder_;
};

}  // namespace aon::spool
