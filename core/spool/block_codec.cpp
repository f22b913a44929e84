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
  Shape* successor;  ///< of the record that stood behind the last one of this shape
  bool is_counted;
  bool has_wide_duration;
  bool is_region;  ///< kBegin, kEnd or kLost: OpenStack follows it
  uint16_t operations[kDirectMasks];
};

struct Operation {
  uint32_t key;          ///< shape << 16 | mask
  uint32_t table_entry;  ///< kNoEntry: in the shape's direct table
};
constexpr uint32_t kNoEntry = ~0u;

/// What changes with each record. A value of add(), so that it stays in registers: bytes that are
/// stored might otherwise be any member of the state.
struct RecordCursor {
  uint8_t* codes;   ///< where the next byte goes
  uint8_t* values;  ///< where the next byte goes
  uint64_t* starts;
  uint32_t* durations;
  uint64_t previous_end_ticks;
  uint64_t first_ticks;
  uint64_t last_ticks;
  uint32_t counted_count;
};

/// The same of the columns of times, which are written when the block is complete.
struct TimeEnds {
  uint8_t* lengths;
  uint8_t* starts_low;
  uint8_t* starts_high;
  uint8_t* durations_low;
  uint8_t* durations_high;
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

uint64_t field_of(const uint8_t* record, uint32_t field) {
  return load_u64(record + offsetof(RecordHead, a64) + size_t{8} * (field - 1));
}

/// Bits of the first `count` fields of a record that differ from `fields`. Most often there are
/// none.
template <uint32_t count>
[[gnu::always_inline]] inline uint32_t changed_fields(const uint8_t* record,
                                                      const uint64_t* fields) {
  const uint64_t a32 = load_u32(record + offsetof(RecordHead, a32));
  uint64_t any = a32 ^ fields[0];
#pragma GCC unroll 16
  for (uint32_t field = 1; field < count; ++field) any |= field_of(record, field) ^ fields[field];
  if (any == 0) return 0;
  uint32_t mask = a32 != fields[0] ? 1 : 0;
#pragma GCC unroll 16
  for (uint32_t field = 1; field < count; ++field)
    mask |= static_cast<uint32_t>(field_of(record, field) != fields[field]) << field;
  return mask;
}

[[gnu::always_inline]] inline uint32_t changed_fields(const Shape& shape, const uint8_t* record) {
  if (__builtin_expect(shape.slot_count == 2, 1))
    return changed_fields<field_count(2)>(record, shape.fields);
  if (shape.slot_count == 1) return changed_fields<field_count(1)>(record, shape.fields);
  if (shape.slot_count == 3) return changed_fields<field_count(3)>(record, shape.fields);
  return changed_fields<field_count(4)>(record, shape.fields);
}

/// Writes the deltas of the fields of `mask` to the shape's last record.
[[gnu::always_inline]] inline uint8_t* put_changes(Shape* shape, const uint8_t* record,
                                                   uint32_t mask, uint8_t* at) {
  if ((mask & 1) != 0) {
    const uint32_t a32 = load_u32(record + offsetof(RecordHead, a32));
    at = put_varint(at, zigzag32(a32 - static_cast<uint32_t>(shape->fields[0])));
    shape->fields[0] = a32;
  }
  for (uint32_t left = mask & ~1u; left != 0; left &= left - 1) {
    const auto field = static_cast<uint32_t>(__builtin_ctz(left));
    const uint64_t value = field_of(record, field);
    const uint64_t last = shape->fields[field];
    shape->fields[field] = value;
    if ((shape->pairs >> field & 1) == 0) {
      at = put_varint(at, zigzag(value - last));
      continue;
    }
    at = put_varint(at, zigzag32(static_cast<uint32_t>(value) - static_cast<uint32_t>(last)));
    at = put_varint(
        at, zigzag32(static_cast<uint32_t>(value >> 32) - static_cast<uint32_t>(last >> 32)));
  }
  return at;
}

/// As significant_bytes(), without the search for the highest bit, which some processors are slow
/// at; nearly all times are short.
[[gnu::always_inline]] inline uint32_t time_bytes(uint64_t value) {
  if (__builtin_expect(value >> 24 != 0, 0)) return significant_bytes(value);
  return uint32_t{value != 0} + uint32_t{value > 0xff} + uint32_t{value > 0xffff};
}

[[gnu::always_inline]] inline void put_times(uint64_t start_delta, uint32_t duration,
                                             TimeEnds* ends) {
  const uint64_t start = zigzag(start_delta);
  const uint32_t start_bytes = time_bytes(start);
  const uint32_t duration_bytes = time_bytes(duration);
  *ends->lengths++ = static_cast<uint8_t>(start_bytes | duration_bytes << 4);
  const uint32_t has_start = start != 0;
  const uint32_t has_duration = duration != 0;
  *ends->starts_low = static_cast<uint8_t>(start);
  ends->starts_low += has_start;
  store_u64(ends->starts_high, start >> 8);
  ends->starts_high += start_bytes - has_start;
  *ends->durations_low = static_cast<uint8_t>(duration);
  ends->durations_low += has_duration;
  store_u64(ends->durations_high, duration >> 8);
  ends->durations_high += duration_bytes - has_duration;
}

}  // namespace

/// The arrays have their largest size from the start and are not touched before they are used.
struct BlockEncoder::State {
  RunSummary summary;
  OpenStack* stack = nullptr;
  Shape* previous = nullptr;  ///< of the last record
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
  uint8_t* column_end[kColumnCount];
  /// Of each record: start, from the end of the record before it, and duration, as they are.
  std::unique_ptr<uint64_t[]> starts{new uint64_t[kMaxBlockRecords]};
  std::unique_ptr<uint32_t[]> durations{new uint32_t[kMaxBlockRecords]};

  State() {
    size_t total_bytes = 0;
    for (uint32_t bytes : kColumnCapacity) total_bytes += bytes + kStoreMarginBytes;
    storage.reset(new uint8_t[total_bytes]);
    uint8_t* at = storage.get();
    for (uint32_t i = 0; i < kColumnCount; ++i) {
      column_start[i] = column_end[i] = at;
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
  Shape* shape_of(const uint8_t* record, uint64_t key);
  Shape* add_shape(const uint8_t* record, uint32_t entry);
  uint32_t operation_of(Shape* shape, uint32_t mask);
  uint16_t add_operation(const Shape& shape, uint32_t mask, uint32_t entry);
  uint16_t hashed_operation(const Shape& shape, uint32_t mask);
  void put_record(const uint8_t* record, Shape* shape, RecordCursor* cursor);
  void put_all_times();
  RecordCursor cursor() const;
  void keep(const RecordCursor& cursor);
};

void BlockEncoder::State::reset() {
  for (uint32_t i = 0; i < shape_count; ++i) shape_table[shapes[i].table_entry] = kNoIndex;
  for (uint32_t i = 0; i < operation_count; ++i) {
    const uint32_t entry = operations[i].table_entry;
    if (entry != kNoEntry) operation_table[entry] = kNoIndex;
  }
  shape_count = 0;
  operation_count = 0;
  for (uint32_t i = 0; i < kColumnCount; ++i) column_end[i] = column_start[i];
  summary = {};
  previous = nullptr;
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
  shape.successor = &shape;
  shape.is_counted = is_counted(head.kind);
  shape.has_wide_duration = (head.flags & kWideDuration) != 0;
  shape.is_region = head.kind == RecordKind::kBegin || head.kind == RecordKind::kEnd ||
                    head.kind == RecordKind::kLost;
  uint8_t* at = column_end[kColumnShapes];
  *at++ = static_cast<uint8_t>(head.kind);
  *at++ = head.slot_count;
  at = put_varint(at, head.flags);
  column_end[kColumnShapes] = put_varint(at, head.id);
  return &shape;
}

/// Finds or adds it. Programs repeat themselves: the successor of the last record's shape is nearly
/// always right, so this is called seldom. Null when the record is not valid.
[[gnu::noinline]] Shape* BlockEncoder::State::shape_of(const uint8_t* record, uint64_t key) {
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
  uint8_t* at = put_varint(column_end[kColumnOperations], shape_index);
  column_end[kColumnOperations] = put_varint(at, mask);
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
                                                                   RecordCursor* cursor) {
  const uint32_t mask = changed_fields(*shape, record);
  if (mask != 0) cursor->values = put_changes(shape, record, mask, cursor->values);
  cursor->codes = put_varint(cursor->codes, operation_of(shape, mask));
  const uint64_t start_ticks = load_u64(record);
  const uint32_t duration = load_u32(record + offsetof(RecordHead, duration_ticks));
  *cursor->starts++ = start_ticks - cursor->previous_end_ticks;
  *cursor->durations++ = duration;
  uint64_t end_ticks = start_ticks + duration;
  if (__builtin_expect(shape->has_wide_duration, 0)) {
    end_ticks = start_ticks + load_u64(record + size_t{shape->slot_count} * kSlotBytes - 8);
  }
  cursor->previous_end_ticks = end_ticks;
  cursor->first_ticks = std::min(cursor->first_ticks, start_ticks);
  cursor->last_ticks = std::max(cursor->last_ticks, end_ticks);
  cursor->counted_count += shape->is_counted ? 1 : 0;
  ++shape->record_count;
}

RecordCursor BlockEncoder::State::cursor() const {
  const uint32_t count = summary.record_count;
  return {column_end[kColumnCodes], column_end[kColumnValues],
          starts.get() + count,     durations.get() + count,
          previous_end_ticks,       count == 0 ? UINT64_MAX : summary.first_ticks,
          summary.last_ticks,       summary.counted_count};
}

void BlockEncoder::State::keep(const RecordCursor& cursor) {
  const auto count = static_cast<uint32_t>(cursor.durations - durations.get());
  column_end[kColumnCodes] = cursor.codes;
  column_end[kColumnValues] = cursor.values;
  previous_end_ticks = cursor.previous_end_ticks;
  summary = {count, cursor.counted_count, count == 0 ? 0 : cursor.first_ticks, cursor.last_ticks};
}

/// A loop of its own, so that the ends of its columns stay in registers.
void BlockEncoder::State::put_all_times() {
  TimeEnds ends{column_end[kColumnLengths], column_end[kColumnStartsLow],
                column_end[kColumnStartsHigh], column_end[kColumnDurationsLow],
                column_end[kColumnDurationsHigh]};
  const uint32_t count = summary.record_count;
  const uint64_t* const start = starts.get();
  const uint32_t* const duration = durations.get();
  for (uint32_t i = 0; i < count; ++i) put_times(start[i], duration[i], &ends);
  column_end[kColumnLengths] = ends.lengths;
  column_end[kColumnStartsLow] = ends.starts_low;
  column_end[kColumnStartsHigh] = ends.starts_high;
  column_end[kColumnDurationsLow] = ends.durations_low;
  column_end[kColumnDurationsHigh] = ends.durations_high;
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
  RecordCursor cursor = s.cursor();
  const uint32_t* const last_place = s.durations.get() + kMaxBlockRecords;
  const uint8_t* record = bytes.data();
  const uint8_t* const end = record + bytes.size();
  Shape* previous = s.previous;
  *refused = false;
  while (cursor.durations != last_place && end - record >= kSlotBytes) {
    const ptrdiff_t record_bytes = ptrdiff_t{record[offsetof(RecordHead, slot_count)]} * kSlotBytes;
    if (end - record < record_bytes) {
      *refused = !is_valid_record(record);
      break;
    }
    const uint64_t key = load_u64(record + offsetof(RecordHead, kind));
    Shape* shape = previous != nullptr ? previous->successor : nullptr;
    if (__builtin_expect(shape == nullptr || shape->key != key, 0)) {
      shape = s.shape_of(record, key);
      if (shape == nullptr) {
        *refused = true;
        break;
      }
      if (previous != nullptr) previous->successor = shape;
    }
    previous = shape;
    s.put_record(record, shape, &cursor);
    if (__builtin_expect(shape->is_region, 0)) s.follow_region(record);
    record += record_bytes;
  }
  s.previous = previous;
  s.keep(cursor);
  return static_cast<size_t>(record - bytes.data());
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

RunSummary BlockEncoder::finish(std::vector<uint8_t>* out, PayloadPart (*parts)[kPayloadParts]) {
  State& s = *state_;
  const size_t start = out->size();
  s.put_all_times();
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
  store_u64(s.column_end[kColumnValues], 0);
  s.column_end[kColumnValues] += kPaddingBytes;
  for (uint32_t i = 0; i < kColumnCount; ++i) {
    header.bytes[i] = static_cast<uint32_t>(s.column_end[i] - s.column_start[i]);
  }
  append(&header, sizeof(header));
  for (uint32_t i = 0; i < kColumnCount; ++i) {
    if (i == kColumnStartsLow && parts != nullptr)
      (*parts)[0] = {static_cast<uint32_t>(out->size() - start), false};
    append(s.column_start[i], header.bytes[i]);
  }
  if (parts != nullptr) {
    for (uint32_t i = 1; i < kPayloadParts; ++i) {
      const uint32_t column = kColumnStartsLow + i - 1;
      (*parts)[i] = {header.bytes[column], column != kColumnValues};
    }
  }
  const RunSummary summary = s.summary;
  s.reset();
  return summary;
}

}  // namespace aon::spool
