/// Reads a file of the spool block by block, with pread and bounded memory (never mmap: others may
/// truncate the file). Finds its way again behind damage: a block counts as lost, not the file.
/// Owner: the caller.   Thread: one.   Cost: a header is 104 bytes read; a payload is one pread and
/// one decompression.
/// Errors: damage is no error but a count; a Status is for the file itself (open, read).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"
#include "core/spool/format.h"

namespace aon::spool {

constexpr uint32_t kBlockPrefixBytes = 8 + sizeof(BlockHeader);  ///< skippable frame up to the data

/// Where a block stands and what its header says.
struct BlockPosition {
  uint64_t offset;  ///< of the skippable frame's magic
  BlockHeader header;
};

/// What a walk over the headers of a file found.
struct ScanResult {
  uint64_t intact_headers = 0;
  uint64_t damaged_blocks = 0;  ///< at least: places without a header, gaps in block_sequence
  uint64_t valid_bytes = 0;     ///< scan_headers only: end of the last whole block
};

/// Reads and checks one payload at a time. Holds no file.
class PayloadReader {
 public:
  PayloadReader();
  ~PayloadReader();
  PayloadReader(PayloadReader&&) noexcept;
  PayloadReader& operator=(PayloadReader&&) noexcept;

  /// The uncompressed payload of the block at `position` of `fd`; lives until the next call.
  /// Errors: kDamaged (frame or checksum), kIo.
  Result<std::span<const uint8_t>> read(int fd, const BlockPosition& position);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True when `prefix` (kBlockPrefixBytes) is the start of an intact block; fills `header`.
bool parse_block_prefix(std::span<const uint8_t> prefix, BlockHeader* header) noexcept;

class BlockFileReader {
 public:
  static Result<BlockFileReader> open(const std::string& path);

  /// Moves to the next intact header. False at the end of the file.
  Result<bool> next(BlockPosition* position);

  /// Payload of the block that next() gave. Errors: kDamaged (also counted), kIo.
  Result<std::span<const uint8_t>> payload();

  const ScanResult& scan() const noexcept { return scan_; }
  const BlockPosition& position() const noexcept { return current_; }
  int fd() const noexcept { return fd_.get(); }

 private:
  Result<bool> read_prefix(uint64_t offset, BlockHeader* header);
  Result<uint64_t> search_prefix(uint64_t from);
  Result<uint64_t> find_behind_damage();
  void count_gap(const BlockHeader& header, bool has_junk);

  static constexpr uint64_t kNoOffset = ~uint64_t{0};

  UniqueFd fd_;
  PayloadReader payload_reader_;
  BlockPosition current_{};
  uint64_t next_offset_ = 0;
  uint64_t next_block_sequence_ = 0;
  bool at_end_ = false;
  ScanResult scan_;
  std::vector<uint8_t> window_;
};

/// Walks over all headers of `path` without reading payloads and calls `visit` (may be null) for
/// each block that is there as a whole, by its length; one that is cut off counts as damaged.
/// The eviction of whole segments uses it to know what it takes away.
Result<ScanResult> scan_headers(const std::string& path,
                                void (*visit)(const BlockPosition&, void*) = nullptr,
                                void* argument = nullptr);

}  // namespace aon::spool
