/// Records of one stream <-> the payload of a record block. Deltas and varints in columns, so that
/// zstd finds little left to do: an MPI call costs 3 to 6 bytes on disk.
///
/// A record is an operation (its shape and which of its fields differ from the last record of the
/// same shape), a start (zigzag delta to the end of the record before it), a duration, and the
/// deltas of the fields that differ. A field that stays as it was costs nothing. Times are noise
/// for the compressor, so they are stored as plain bytes without branches: the lowest byte of each
/// in one column, the others in the next, the number of bytes in a third.
///
///     payload:    | open count u32 | {region u32, start u64}... | ColumnHeader | columns |
///     columns:    shapes, operations, codes, lengths, starts low, starts high, durations low,
///                 durations high, values (block_columns.h)
///     shape:      kind u8, slot_count u8, flags varint, id varint
///     operation:  shape varint, mask varint
///     code:       index of an operation, varint; one per record
///     length:     u8; one per record: low half bytes of the start (0-8), high half of the duration
///                 (0-4)
///     start:      zigzag delta, its lowest byte in "low", the others in "high"
///     duration:   the field, as a start without zigzag
///     value:      zigzag varint delta to the field in the last record of the shape, in the order
///                 of the mask's bits: 0 a32, 1 a64, 2 + w word w. a32 and each half of a word that
///                 packs a pair (record.h; low half first) count as 32-bit numbers. Eight zero
///                 bytes stand behind the last one.
///
/// Thread: an encoder or decoder belongs to one thread and is reused for any number of blocks.
/// Cost: encode 9 to 20 ns per record, decode about 20 ns; memory bounded by kMaxBlockRecords.
/// Errors: the decoder trusts nothing; a bad payload is kDamaged, and what came out before it is
/// valid.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/spool/format.h"
#include "core/spool/open_stack.h"

namespace aon::spool {

/// What the header of the block says about the records in it.
struct RunSummary {
  uint32_t record_count = 0;
  uint32_t counted_count = 0;
  uint64_t first_ticks = 0;  ///< smallest start
  uint64_t last_ticks = 0;   ///< largest end
};

/// How many of a block's records are of one kind and id (a call site's, for calls).
struct ShapeCount {
  RecordKind kind;
  uint32_t id;
  uint32_t record_count;
};

/// A stretch of a payload that resembles itself and nothing else in it.
struct PayloadPart {
  uint32_t byte_count;
  bool is_noise;  ///< of times: bytes are not equally frequent, but do not repeat in a row
};
constexpr uint32_t kPayloadParts = 6;  ///< before the times, their four columns, behind them

class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  /// Starts a block. `stack`, the state of the stream here, goes into the payload; add() then moves
  /// it on. May be null for a stream without regions.
  void begin(OpenStack* stack);

  /// Adds the records in `bytes`, as they stand in a chunk. Stops at kMaxBlockRecords, at a record
  /// that is cut off and at one that is_valid() refuses (`*refused` is then true).
  /// Returns the bytes taken.
  size_t add(std::span<const uint8_t> bytes, bool* refused);

  const RunSummary& summary() const;
  bool is_full() const;
  /// Tells what the block has so far; a kind and id may come several times.
  void visit_shapes(const std::function<void(const ShapeCount&)>& visit) const;

  /// Appends the payload to `out` and ends the block. `parts` may be null.
  RunSummary finish(std::vector<uint8_t>* out, PayloadPart (*parts)[kPayloadParts] = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(BlockDecoder&&) noexcept;
  BlockDecoder& operator=(BlockDecoder&&) noexcept;

  /// Opens a payload, which must outlive the calls of next(). `record_count` is the header's.
  Status begin(std::span<const uint8_t> payload, uint32_t record_count);

  /// The regions open before the first record.
  std::span<const OpenRegion> open_regions() const;

  /// Decodes the next records into `out`; 0 at the end of the block. Words that a record does not
  /// have are zero. Every record that comes out passes is_valid().
  Result<size_t> next(std::span<Record> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aon::spool
