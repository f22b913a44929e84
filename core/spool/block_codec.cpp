#include "core/spool/block_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/spool/block_columns.h"

namespace aon::spool {
namespace {

constexpr uint32_t kTableEntries = 2 * kMaxBlockRecords;  ///< open addressing, at most half full
constexpr uint32_t kStoreMarginBytes = 8;  ///< columns are stored eight bytes at once
constexpr uint16_t kNoIndex = 0xffff;

/// Bytes a column can reach in a block of kMaxBlockRecords records.
constexpr uint32_t kColumnCapacity[kColumnCount] = {
    kMaxBlockRecords * (2 + 3 + 5),                 // shapes
    kMaxBlockRecords*(2 + 3),                       // operations
    kMaxBlockRecords * 2,                           // codes
    kMaxBlockRecords,                               // lengths
    kMaxBlockRecords,                               // starts low
    kMaxBlockRecords * 7,                           // starts high
    kMaxBlockRecords,                               // durations low
    kMaxBlockRecords * 3,                           // durations high
    kMaxBlockRecords* kFieldCount* kMaxVarintBytes  // values
};

/// Masks below this (records of one or two slots) are looked up directly.
constexpr uint32_t kDirectMasks = 1u << field_count(2);

/// A kind, slot count, flags and id, and the last record that had them. The four are one u64 in the
/// record: bytes 12 to 19.
struct Shape {
  uint64_t key;
  uint64_t fields[kFieldCount];
  uint32_t table_entry;
  uint32_t pairs;  ///< bit per field
  uint32_t slot_count;
  uint32_t record_count;
  bool is_counted;
  bool has_wide_duration;
  bool is_region;  ///< kBegin or kEnd
  uint16_t operations[kDirectMasks];
};

struct Operation {
  uint32_t key;          ///< shape << 16 | mask
  uint32_t table_entry;  ///< kNoEntry: in the shape's direct table
};
constexpr uint32_t kNoEntry = ~0u;

/// Where the next byte of each column goes. Kept in registers while records are added.
struct ColumnEnds {
  uint8_t* at[kColumnCount];
};

uint64_t load_u64(const uint8_t* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
uint32_t load_u32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
void store_u64(uint8_t* at, uint64_t value) { std::memcpy(at, &value, sizeof(value)); }

uint32_t hash_entry(uint64_t key) {
  return static_cast<uint32_t>((key * 0x9e3779b97f4a7c15ull) >> 50) % kTableEntries;
}

bool is_valid_record(const uint8_t* record) {
  RecordHead head;
  std::memcpy(&head, record, sizeof(head));
  return is_valid(head);
}

/// Bits of the fields from 1 to `count` - 1 of `record` that differ from `fields`.
template <uint32_t count>
[[gnu::always_inline]] inline uint32_t changed_fields(const uint8_t* record,
                                                      const uint64_t* fields) {
  uint32_t mask = 0;
#pragma GCC unroll 16
  for (uint32_t field = 1; field < count; ++field) {
    const uint64_t value = load_u64(record + offsetof(RecordHead, a64) + 8 * (field - 1));
    mask |= static_cast<uint32_t>(value != fields[field]) << field;
  }
  return mask;
}

[[gnu::always_inline]] inline uint32_t changed_fields(const uint8_t* record, uint32_t slot_count,
                                                      const uint64_t* fields) {
  switch (slot_count) {
    case 1:
      return changed_fields<field_count(1)>(record, fields);
    case 2:
      return changed_fields<field_count(2)>(record, fields);
    case 3:
      return changed_fields<field_count(3)>(record, fields);
    default:
      return changed_fields<field_count(4)>(record, fields);
  }
}

/// Writes the deltas of the fields that differ from the shape's last record; returns their mask.
[[gnu::always_inline]] inline uint32_t put_changes(Shape* shape, const uint8_t* record,
                                                   ColumnEnds* ends) {
  uint8_t* at = ends->at[kColumnValues];
  uint32_t mask = changed_fields(record, shape->slot_count, shape->fields);
  const uint32_t a32 = load_u32(record + offsetof(RecordHead, a32));
  if (a32 != shape->fields[0]) {
    at = put_varint(at, zigzag32(a32 - static_cast<uint32_t>(shape->fields[0])));
    shape->fields[0] = a32;
    mask |= 1;
  }
  for (uint32_t left = mask & ~1u; left != 0; left &= left - 1) {
    const auto field = static_cast<uint32_t>(__builtin_ctz(left));
    const uint64_t value = load_u64(record + offsetof(RecordHead, a64) + size_t{8} * (field - 1));
    const uint64_t last = shape->fields[field];
    if ((shape->pairs >> field & 1) != 0) {
      at = put_varint(at, zigzag32(static_cast<uint32_t>(value) - static_cast<uint32_t>(last)));
      at = put_varint(
          at, zigzag32(static_cast<uint32_t>(value >> 32) - static_cast<uint32_t>(last >> 32)));
    } else {
      at = put_varint(at, zigzag(value - last));
    }
    shape->fields[field] = value;
  }
  ends->at[kColumnValues] = at;
  return mask;
}

[[gnu::always_inline]] inline void put_times(uint64_t start_delta, uint32_t duration,
                                             ColumnEnds* ends) {
  const uint64_t start = zigzag(start_delta);
  const uint32_t start_bytes = significant_bytes(start);
  const uint32_t duration_bytes = significant_bytes(duration);
  *ends->at[kColumnLengths]++ = static_cast<uint8_t>(start_bytes | duration_bytes << 4);
  const uint32_t has_start = start_bytes != 0;
  const uint32_t has_duration = duration_bytes != 0;
  *ends->at[kColumnStartsLow] = static_cast<uint8_t>(start);
  ends->at[kColumnStartsLow] += has_start;
  store_u64(ends->at[kColumnStartsHigh], start >> 8);
  ends->at[kColumnStartsHigh] += start_bytes - has_start;
  *ends->at[kColumnDurationsLow] = static_cast<uint8_t>(duration);
  ends->at[kColumnDurationsLow] += has_duration;
  store_u64(ends->at[kColumnDurationsHigh], duration >> 8);
  ends->at[kColumnDurationsHigh] += duration_bytes - has_duration;
}

}  // namespace

/// The arrays have their largest size from the start and are not touched before they are used.
struct BlockEncoder::State {
  RunSummary summary;
  OpenStack* stack = nullptr;
  uint64_t previous_end_ticks = 0;
  std::vector<OpenRegion> open_at_start;
  uint32_t shape_count = 0;
  uint32_t operation_count = 0;
  std::unique_ptr<Shape[]> shapes{new Shape[kMaxBlockRecords]};
  std::unique_ptr<Operation[]> operations{new Operation[kMaxBlockRecords]};
  std::vector<uint16_t> shape_table = std::vector<uint16_t>(kTableEntries, kNoIndex);
  std::vector<uint16_t> operation_table = std::vector<uint16_t>(kTableEntries, kNoIndex);
  std::unique_ptr<uint8_t[]> storage;
  uint8_t* column_start[kColumnCount];
  ColumnEnds ends;

  State() {
    size_t total_bytes = 0;
    for (uint32_t bytes : kColumnCapacity) total_bytes += bytes + kStoreMarginBytes;
    storage.reset(new uint8_t[total_bytes]);
    uint8_t* at = storage.get();
    for (uint32_t i = 0; i < kColumnCount; ++i) {
      column_start[i] = ends.at[i] = at;
      at += kColumnCapacity[i] + kStoreMarginBytes;
    }
  }

  void reset();
  void follow_region(const uint8_t* record) {
    if (stack == nullptr) return;
    RecordHead head;
    std::memcpy(&head, record, sizeof(head));
    stack->follow(head);
  }
  Shape* shape_of(const uint8_t* record);
  Shape* add_shape(const uint8_t* record, uint32_t entry);
  uint32_t operation_of(Shape* shape, uint32_t mask);
  uint16_t add_operation(const Shape& shape, uint32_t mask, uint32_t entry);
  uint16_t hashed_operation(const Shape& shape, uint32_t mask);
  void put_record(const uint8_t* record, Shape* shape, ColumnEnds* local);
};

void BlockEncoder::State::reset() {
  for (uint32_t i = 0; i < shape_count; ++i) shape_table[shapes[i].table_entry] = kNoIndex;
  for (uint32_t i = 0; i < operation_count; ++i) {
    const uint32_t entry = operations[i].table_entry;
    if (entry != kNoEntry) operation_table[entry] = kNoIndex;
  }
  shape_count = 0;
  operation_count = 0;
  for (uint32_t i = 0; i < kColumnCount; ++i) ends.at[i] = column_start[i];
  summary = {};
  previous_end_ticks = 0;
}

/// The shape of a record that is the first of its kind in the block; null when it is not valid.
[[gnu::noinline]] Shape* BlockEncoder::State::add_shape(const uint8_t* record, uint32_t entry) {
  RecordHead head;
  std::memcpy(&head, record, sizeof(head));
  if (!is_valid(head)) return nullptr;
  shape_table[entry] = static_cast<uint16_t>(shape_count);
  Shape& shape = shapes[shape_count++];
  std::memset(shape.fields, 0, sizeof(shape.fields));
  std::memset(shape.operations, 0xff, sizeof(shape.operations));
  shape.key = load_u64(record + offsetof(RecordHead, kind));
  shape.table_entry = entry;
  shape.pairs = pair_words(head.kind) << 2;
  shape.slot_count = head.slot_count;
  shape.record_count = 0;
  shape.is_counted = is_counted(head.kind);
  shape.has_wide_duration = (head.flags & kWideDuration) != 0;
  shape.is_region = head.kind == RecordKind::kBegin || head.kind == RecordKind::kEnd;
  uint8_t* at = ends.at[kColumnShapes];
  *at++ = static_cast<uint8_t>(head.kind);
  *at++ = head.slot_count;
  at = put_varint(at, head.flags);
  ends.at[kColumnShapes] = put_varint(at, head.id);
  return &shape;
}

[[gnu::always_inline]] inline Shape* BlockEncoder::State::shape_of(const uint8_t* record) {
  const uint64_t key = load_u64(record + offsetof(RecordHead, kind));
  uint32_t entry = hash_entry(key);
  for (;; entry = (entry + 1) % kTableEntries) {
    const uint16_t index = shape_table[entry];
    if (__builtin_expect(index == kNoIndex, 0)) return add_shape(record, entry);
    if (__builtin_expect(shapes[index].key == key, 1)) return &shapes[index];
  }
}

[[gnu::noinline]] uint16_t BlockEncoder::State::add_operation(const Shape& shape, uint32_t mask,
                                                              uint32_t entry) {
  const auto shape_index = static_cast<uint32_t>(&shape - shapes.get());
  operations[operation_count] = {shape_index << 16 | mask, entry};
  uint8_t* at = put_varint(ends.at[kColumnOperations], shape_index);
  ends.at[kColumnOperations] = put_varint(at, mask);
  return static_cast<uint16_t>(operation_count++);
}

[[gnu::noinline]] uint16_t BlockEncoder::State::hashed_operation(const Shape& shape,
                                                                 uint32_t mask) {
  const uint32_t key = static_cast<uint32_t>(&shape - shapes.get()) << 16 | mask;
  uint32_t entry = hash_entry(key);
  for (;; entry = (entry + 1) % kTableEntries) {
    const uint16_t index = operation_table[entry];
    if (index == kNoIndex) break;
    if (operations[index].key == key) return index;
  }
  return operation_table[entry] = add_operation(shape, mask, entry);
}

[[gnu::always_inline]] inline uint32_t BlockEncoder::State::operation_of(Shape* shape,
                                                                         uint32_t mask) {
  if (__builtin_expect(mask >= kDirectMasks, 0)) return hashed_operation(*shape, mask);
  uint16_t& index = shape->operations[mask];
  if (__builtin_expect(index == kNoIndex, 0)) index = add_operation(*shape, mask, kNoEntry);
  return index;
}

[[gnu::always_inline]] inline void BlockEncoder::State::put_record(const uint8_t* record,
                                                                   Shape* shape,
                                                                   ColumnEnds* local) {
  const uint32_t mask = put_changes(shape, record, local);
  local->at[kColumnCodes] = put_varint(local->at[kColumnCodes], operation_of(shape, mask));
  const uint64_t start_ticks = load_u64(record);
  const uint32_t duration = load_u32(record + offsetof(RecordHead, duration_ticks));
  put_times(start_ticks - previous_end_ticks, duration, local);
  uint64_t end_ticks = start_ticks + duration;
  if (__builtin_expect(shape->has_wide_duration, 0)) {
    end_ticks = start_ticks + load_u64(record + size_t{shape->slot_count} * kSlotBytes - 8);
  }
  previous_end_ticks = end_ticks;
  summary.first_ticks = std::min(summary.first_ticks, start_ticks);
  summary.last_ticks = std::max(summary.last_ticks, end_ticks);
  ++shape->record_count;
  ++summary.record_count;
  summary.counted_count += shape->is_counted ? 1 : 0;
}

BlockEncoder::BlockEncoder() : state_(std::make_unique<State>()) {}
BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::begin(OpenStack* stack) {
  state_->reset();
  state_->stack = stack;
  state_->open_at_start.clear();
  if (stack != nullptr) state_->open_at_start = stack->regions();
}

size_t BlockEncoder::add(std::span<const uint8_t> bytes, bool* refused) {
  State& s = *state_;
  size_t taken = 0;
  *refused = false;
  if (s.summary.record_count == 0) s.summary.first_ticks = UINT64_MAX;
  // Shapes and operations are written by functions that are not inlined; the rest only here.
  ColumnEnds local = s.ends;
  while (s.summary.record_count < kMaxBlockRecords && bytes.size() - taken >= kSlotBytes) {
    const uint8_t* record = bytes.data() + taken;
    const size_t left_bytes = bytes.size() - taken;
    if (left_bytes < size_t{record[offsetof(RecordHead, slot_count)]} * kSlotBytes) {
      *refused = !is_valid_record(record);
      break;
    }
    Shape* shape = s.shape_of(record);
    if (shape == nullptr) {
      *refused = true;
      break;
    }
    s.put_record(record, shape, &local);
    if (__builtin_expect(shape->is_region, 0)) s.follow_region(record);
    taken += size_t{shape->slot_count} * kSlotBytes;
  }
  for (uint32_t i = kColumnCodes; i < kColumnCount; ++i) s.ends.at[i] = local.at[i];
  if (s.summary.record_count == 0) s.summary.first_ticks = 0;
  return taken;
}

const RunSummary& BlockEncoder::summary() const { return state_->summary; }
bool BlockEncoder::is_full() const { return state_->summary.record_count == kMaxBlockRecords; }

void BlockEncoder::visit_shapes(const std::function<void(const ShapeCount&)>& visit) const {
  for (uint32_t i = 0; i < state_->shape_count; ++i) {
    const Shape& shape = state_->shapes[i];
    RecordHead head{};
    std::memcpy(reinterpret_cast<uint8_t*>(&head) + offsetof(RecordHead, kind), &shape.key,
                sizeof(shape.key));
    visit({head.kind, head.id, shape.record_count});
  }
}

RunSummary BlockEncoder::finish(std::vector<uint8_t>* out) {
  State& s = *state_;
  ColumnHeader header{s.shape_count, s.operation_count, {}};
  const auto append = [out](const void* data, size_t bytes) {
    const auto* from = static_cast<const uint8_t*>(data);
    out->insert(out->end(), from, from + bytes);
  };
  const auto open_count = static_cast<uint32_t>(s.open_at_start.size());
  append(&open_count, sizeof(open_count));
  for (const OpenRegion& open : s.open_at_start) {
    const OpenRegionEntry entry{open.region, static_cast<uint32_t>(open.start_ticks),
                                static_cast<uint32_t>(open.start_ticks >> 32)};
    append(&entry, sizeof(entry));
  }
  store_u64(s.ends.at[kColumnValues], 0);
  s.ends.at[kColumnValues] += kPaddingBytes;
  for (uint32_t i = 0; i < kColumnCount; ++i) {
    header.bytes[i] = static_cast<uint32_t>(s.ends.at[i] - s.column_start[i]);
  }
  append(&header, sizeof(header));
  for (uint32_t i = 0; i < kColumnCount; ++i) append(s.column_start[i], header.bytes[i]);
  const RunSummary summary = s.summary;
  s.reset();
  return summary;
}

}  // namespace aon::spool
