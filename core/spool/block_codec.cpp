#include "core/spool/block_codec.h"

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

/// A kind, slot count, flags and id, and the last record that had them. The four are one u64 in the
/// record: bytes 12 to 19.
struct Shape {
  uint64_t key;
  uint64_t fields[kFieldCount];
  uint32_t table_entry;
  uint16_t last_mask;
  uint16_t last_operation;
};

struct Operation {
  uint32_t key;  ///< shape << 16 | mask
  uint32_t table_entry;
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

}  // namespace

struct BlockEncoder::State {
  RunSummary summary;
  OpenStack* stack = nullptr;
  uint64_t previous_end_ticks = 0;
  std::vector<OpenRegion> open_at_start;
  std::vector<Shape> shapes;
  std::vector<Operation> operations;
  std::vector<uint16_t> shape_table = std::vector<uint16_t>(kTableEntries, kNoIndex);
  std::vector<uint16_t> operation_table = std::vector<uint16_t>(kTableEntries, kNoIndex);
  std::unique_ptr<uint8_t[]> storage;
  uint8_t* column_start[kColumnCount];
  uint8_t* column[kColumnCount];

  State() {
    size_t total_bytes = 0;
    for (uint32_t bytes : kColumnCapacity) total_bytes += bytes + kStoreMarginBytes;
    storage.reset(new uint8_t[total_bytes]);  // not touched before it is used
    uint8_t* at = storage.get();
    for (uint32_t i = 0; i < kColumnCount; ++i) {
      column_start[i] = column[i] = at;
      at += kColumnCapacity[i] + kStoreMarginBytes;
    }
  }

  void reset();
  Shape& shape_of(const uint8_t* record);
  uint16_t add_shape(uint64_t key, uint32_t entry);
  uint16_t operation_of(Shape* shape, uint32_t mask);
  uint16_t add_operation(uint32_t key, uint32_t entry);
  uint32_t put_changes(Shape* shape, const uint8_t* record, uint32_t slot_count, RecordKind kind);
  void put_times(uint64_t start_delta, uint32_t duration);
  void put_record(const uint8_t* record, const RecordHead& head);
};

void BlockEncoder::State::reset() {
  for (const Shape& shape : shapes) shape_table[shape.table_entry] = kNoIndex;
  for (const Operation& operation : operations) operation_table[operation.table_entry] = kNoIndex;
  shapes.clear();
  operations.clear();
  for (uint32_t i = 0; i < kColumnCount; ++i) column[i] = column_start[i];
  summary = {};
  previous_end_ticks = 0;
}

uint16_t BlockEncoder::State::add_shape(uint64_t key, uint32_t entry) {
  const auto index = static_cast<uint16_t>(shapes.size());
  shape_table[entry] = index;
  shapes.push_back({key, {}, entry, kNoIndex, 0});
  uint8_t* at = column[kColumnShapes];
  *at++ = static_cast<uint8_t>(key);
  *at++ = static_cast<uint8_t>(key >> 8);
  at = put_varint(at, (key >> 16) & 0xffff);
  column[kColumnShapes] = put_varint(at, key >> 32);
  return index;
}

inline Shape& BlockEncoder::State::shape_of(const uint8_t* record) {
  const uint64_t key = load_u64(record + offsetof(RecordHead, kind));
  uint32_t entry = hash_entry(key);
  for (;; entry = (entry + 1) % kTableEntries) {
    const uint16_t index = shape_table[entry];
    if (index == kNoIndex) return shapes[add_shape(key, entry)];
    if (shapes[index].key == key) return shapes[index];
  }
}

uint16_t BlockEncoder::State::add_operation(uint32_t key, uint32_t entry) {
  const auto index = static_cast<uint16_t>(operations.size());
  operation_table[entry] = index;
  operations.push_back({key, entry});
  uint8_t* at = put_varint(column[kColumnOperations], key >> 16);
  column[kColumnOperations] = put_varint(at, key & 0xffff);
  return index;
}

inline uint16_t BlockEncoder::State::operation_of(Shape* shape, uint32_t mask) {
  if (shape->last_mask == mask) return shape->last_operation;
  const uint32_t key = (static_cast<uint32_t>(shape - shapes.data()) << 16) | mask;
  uint32_t entry = hash_entry(key);
  uint16_t index = operation_table[entry];
  while (index != kNoIndex && operations[index].key != key) {
    entry = (entry + 1) % kTableEntries;
    index = operation_table[entry];
  }
  if (index == kNoIndex) index = add_operation(key, entry);
  shape->last_mask = static_cast<uint16_t>(mask);
  shape->last_operation = index;
  return index;
}

/// Writes the deltas of the fields that differ from the shape's last record; returns their mask.
inline uint32_t BlockEncoder::State::put_changes(Shape* shape, const uint8_t* record,
                                                 uint32_t slot_count, RecordKind kind) {
  uint8_t* at = column[kColumnValues];
  uint32_t mask = 0;
  const uint32_t a32 = load_u32(record + offsetof(RecordHead, a32));
  if (a32 != shape->fields[0]) {
    at = put_varint(at, zigzag32(a32 - static_cast<uint32_t>(shape->fields[0])));
    shape->fields[0] = a32;
    mask = 1;
  }
  const uint64_t pairs = uint64_t{pair_words(kind)} << 2;
  const uint32_t count = field_count(slot_count);
  const uint8_t* from = record + offsetof(RecordHead, a64);
  for (uint32_t field = 1; field < count; ++field, from += 8) {
    const uint64_t value = load_u64(from);
    const uint64_t last = shape->fields[field];
    if (value == last) continue;
    if ((pairs >> field & 1) != 0) {
      at = put_varint(at, zigzag32(static_cast<uint32_t>(value) - static_cast<uint32_t>(last)));
      at = put_varint(
          at, zigzag32(static_cast<uint32_t>(value >> 32) - static_cast<uint32_t>(last >> 32)));
    } else {
      at = put_varint(at, zigzag(value - last));
    }
    shape->fields[field] = value;
    mask |= 1u << field;
  }
  column[kColumnValues] = at;
  return mask;
}

inline void BlockEncoder::State::put_times(uint64_t start_delta, uint32_t duration) {
  const uint64_t start = zigzag(start_delta);
  const uint32_t start_bytes = significant_bytes(start);
  const uint32_t duration_bytes = significant_bytes(duration);
  *column[kColumnLengths]++ = static_cast<uint8_t>(start_bytes | duration_bytes << 4);
  const uint32_t has_start = start_bytes != 0;
  const uint32_t has_duration = duration_bytes != 0;
  *column[kColumnStartsLow] = static_cast<uint8_t>(start);
  column[kColumnStartsLow] += has_start;
  store_u64(column[kColumnStartsHigh], start >> 8);
  column[kColumnStartsHigh] += start_bytes - has_start;
  *column[kColumnDurationsLow] = static_cast<uint8_t>(duration);
  column[kColumnDurationsLow] += has_duration;
  store_u64(column[kColumnDurationsHigh], duration >> 8);
  column[kColumnDurationsHigh] += duration_bytes - has_duration;
}

inline void BlockEncoder::State::put_record(const uint8_t* record, const RecordHead& head) {
  Shape& shape = shape_of(record);
  const uint32_t mask = put_changes(&shape, record, head.slot_count, head.kind);
  const uint16_t code = operation_of(&shape, mask);
  column[kColumnCodes] = put_varint(column[kColumnCodes], code);
  put_times(head.start_ticks - previous_end_ticks, head.duration_ticks);
  uint64_t end = head.start_ticks + head.duration_ticks;
  if ((head.flags & kWideDuration) != 0) {
    end = head.start_ticks + load_u64(record + uint32_t{head.slot_count} * kSlotBytes - 8);
  }
  previous_end_ticks = end;
  const bool is_first = summary.record_count == 0;
  if (is_first || head.start_ticks < summary.first_ticks) summary.first_ticks = head.start_ticks;
  if (is_first || end > summary.last_ticks) summary.last_ticks = end;
  ++summary.record_count;
  summary.counted_count += is_counted(head.kind) ? 1 : 0;
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
  while (s.summary.record_count < kMaxBlockRecords && bytes.size() - taken >= kSlotBytes) {
    const uint8_t* record = bytes.data() + taken;
    RecordHead head;
    std::memcpy(&head, record, sizeof(head));
    if (!is_valid(head)) {
      *refused = true;
      break;
    }
    const size_t record_bytes = size_t{head.slot_count} * kSlotBytes;
    if (bytes.size() - taken < record_bytes) break;
    s.put_record(record, head);
    if (s.stack != nullptr) s.stack->follow(head);
    taken += record_bytes;
  }
  return taken;
}

const RunSummary& BlockEncoder::summary() const { return state_->summary; }
bool BlockEncoder::is_full() const { return state_->summary.record_count == kMaxBlockRecords; }

RunSummary BlockEncoder::finish(std::vector<uint8_t>* out) {
  State& s = *state_;
  ColumnHeader header{
      static_cast<uint32_t>(s.shapes.size()), static_cast<uint32_t>(s.operations.size()), {}};
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
  for (uint32_t i = 0; i < kColumnCount; ++i) {
    header.bytes[i] = static_cast<uint32_t>(s.column[i] - s.column_start[i]);
  }
  append(&header, sizeof(header));
  for (uint32_t i = 0; i < kColumnCount; ++i) append(s.column_start[i], header.bytes[i]);
  const RunSummary summary = s.summary;
  s.reset();
  return summary;
}

}  // namespace aon::spool
