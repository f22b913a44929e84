/// Seals payloads into blocks, ready to be written to a file of the spool (format.h). No I/O here:
/// the agent writes the bytes and owns the file's offset.
/// Thread: one owner each.   Cost: zstd level 1, 6 to 11 ns per record; CRC is free.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/spool/block_codec.h"
#include "core/spool/format.h"

namespace aon::spool {

/// Compresses and frames.
class BlockSealer {
 public:
  explicit BlockSealer(int zstd_level = 1);
  ~BlockSealer();
  BlockSealer(const BlockSealer&) = delete;
  BlockSealer& operator=(const BlockSealer&) = delete;

  /// Appends one block to `out`. Magic, version, sizes and CRC of `header` are filled in here.
  /// `parts`, if any, cover the payload: of a large one each becomes a frame of its own, with
  /// statistics of its own, and no repetitions are searched for in noise.
  /// Errors: kInvalid (payload above kMaxBlockBytes), kBug (zstd refused).
  Status seal(BlockHeader header, std::span<const uint8_t> payload, std::vector<uint8_t>* out,
              std::span<const PayloadPart> parts = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One stream's records -> one block: BlockEncoder and BlockSealer together.
class RecordBlockWriter {
 public:
  explicit RecordBlockWriter(int zstd_level = 1) : sealer_(zstd_level) {}

  /// As BlockEncoder::begin.
  void begin(uint32_t process, uint16_t slot, uint16_t context, uint64_t first_sequence,
             OpenStack* stack);
  /// As BlockEncoder::add.
  size_t add(std::span<const uint8_t> bytes, bool* refused) { return encoder_.add(bytes, refused); }
  bool is_full() const { return encoder_.is_full(); }
  const RunSummary& summary() const { return encoder_.summary(); }
  /// As BlockEncoder::visit_shapes.
  void visit_shapes(const std::function<void(const ShapeCount&)>& visit) const {
    encoder_.visit_shapes(visit);
  }
  /// Appends the block to `out`; nothing when it has no records. The next block of the stream
  /// starts at `first_sequence` + `counted_count` of the header that is returned.
  Result<BlockHeader> seal(uint64_t block_sequence, std::vector<uint8_t>* out);

 private:
  BlockEncoder encoder_;
  BlockSealer sealer_;
  BlockHeader header_{};
  std::vector<uint8_t> payload_;
};

/// Collects definitions of one process (or of the node: kNodeProcess) and seals them as one block.
class DefinitionBlockWriter {
 public:
  /// Adds a definition as it came from a ring: struct and strings already in one piece.
  void add(uint32_t type, std::span<const uint8_t> payload);
  /// Adds a definition struct of definition.h and its strings, in the order it names them.
  template <class T>
  void add(DefinitionType type, const T& definition,
           std::initializer_list<std::string_view> strings = {}) {
    add_parts(type, &definition, sizeof(definition), strings);
  }
  void add_text(DefinitionType type, std::string_view text) { add_parts(type, nullptr, 0, {text}); }

  bool is_empty() const { return payload_.empty(); }
  size_t payload_bytes() const { return payload_.size(); }
  uint32_t count() const { return count_; }
  /// Appends one block to `out` and starts anew. `ticks`: now, kept in the header.
  Status seal(BlockSealer* sealer, uint32_t process, uint64_t block_sequence, uint64_t ticks,
              std::vector<uint8_t>* out);

 private:
  void add_parts(DefinitionType type, const void* fixed, size_t fixed_bytes,
                 std::initializer_list<std::string_view> strings);

  std::vector<uint8_t> payload_;
  uint32_t count_ = 0;
};

/// Gives the sealed block at `block` another number in its file.
void renumber_block(uint8_t* block, uint64_t block_sequence) noexcept;

}  // namespace aon::spool
