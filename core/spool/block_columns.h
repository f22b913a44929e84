/// What encoder and decoder of a record block share: the columns' order, varints, and which words
/// are pairs. Internal to block_codec.cpp and block_decoder.cpp; the layout is drawn in
/// block_codec.h.   Thread: any.   Cost: a few instructions each.
#pragma once

#include <aon/record.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace aon::spool {

enum Column : uint32_t {
  kColumnShapes = 0,
  kColumnOperations,
  kColumnCodes,
  kColumnLengths,
  kColumnStartsLow,
  kColumnStartsHigh,
  kColumnDurationsLow,
  kColumnDurationsHigh,
  kColumnValues,
  kColumnCount,
};

/// Stands before the columns in the payload.
struct ColumnHeader {
  uint32_t shape_count;
  uint32_t operation_count;
  uint32_t bytes[kColumnCount];
};
static_assert(sizeof(ColumnHeader) == 44);

struct OpenRegionEntry {
  uint32_t region;
  uint32_t start_low;
  uint32_t start_high;
};
static_assert(sizeof(OpenRegionEntry) == 12);

/// Zero bytes at the end of the values, so that a reader may load eight bytes at any time.
constexpr uint32_t kPaddingBytes = 8;

constexpr uint32_t kMaxVarintBytes = 10;
constexpr uint32_t kFieldCount = 2 + kMaxWords;  ///< a32, a64, words

/// Fields of a record of `slot_count` slots.
constexpr uint32_t field_count(uint32_t slot_count) { return 2 + (slot_count - 1) * 4; }

/// Bit w is set where word w holds a pair of i32 (table in record.h).
constexpr uint32_t pair_words(RecordKind kind) {
  switch (kind) {
    case RecordKind::kMessage:
    case RecordKind::kCompletion:
    case RecordKind::kRma:
    case RecordKind::kIo:
      return 0b001;
    case RecordKind::kExchange:
      return 0b101;
    case RecordKind::kCollective:
      return 0b010;
    default:
      return 0;
  }
}

constexpr uint64_t zigzag(uint64_t delta) { return (delta << 1) ^ (0 - (delta >> 63)); }
constexpr uint64_t unzigzag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }
constexpr uint32_t zigzag32(uint32_t delta) { return (delta << 1) ^ (0u - (delta >> 31)); }
constexpr uint32_t unzigzag32(uint32_t value) { return (value >> 1) ^ (0u - (value & 1)); }

/// Bytes that hold `value` without leading zero bytes; 0 for 0.
constexpr uint32_t significant_bytes(uint64_t value) {
  return value == 0 ? 0 : (71u - static_cast<uint32_t>(__builtin_clzll(value))) / 8;
}

inline uint8_t* put_varint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

/// Reads a varint in [*at, end). False when it is cut off or too long.
inline bool get_varint(const uint8_t** at, const uint8_t* end, uint64_t* value) {
  const uint8_t* p = *at;
  if (p != end && *p < 0x80) {
    *value = *p;
    *at = p + 1;
    return true;
  }
  uint64_t result = 0;
  for (uint32_t shift = 0; shift < 64 && p != end; shift += 7) {
    const uint8_t byte = *p++;
    result |= uint64_t{byte & 0x7fu} << shift;
    if (byte >= 0x80) continue;
    *value = result;
    *at = p;
    return true;
  }
  return false;
}

}  // namespace aon::spool
