#include <algorithm>
#include <cstring>

#include "core/spool/block_codec.h"
#include "core/spool/block_columns.h"

namespace aon::spool {
namespace {

/// A shape and its last record, complete but for the times.
struct Shape {
  Record last;
  uint32_t pairs;  ///< bit per field
};

struct Operation {
  uint32_t shape;
  uint32_t mask;
};

/// One column: what is left of it.
struct ColumnCursor {
  const uint8_t* at = nullptr;
  const uint8_t* end = nullptr;

  size_t left() const { return static_cast<size_t>(end - at); }
};

Error damaged(const char* what) { return {Code::kDamaged, std::string("record block: ") + what}; }

/// The `bytes` (0-8) at `at` as a number; `readable_end` bounds the memory that may be touched.
inline uint64_t load_bytes(const uint8_t* at, uint32_t bytes, const uint8_t* readable_end) {
  uint64_t value = 0;
  if (__builtin_expect(readable_end - at >= 8, 1)) {
    std::memcpy(&value, at, 8);
    const uint64_t keep = bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
    return value & keep;
  }
  std::memcpy(&value, at, bytes);
  return value;
}

}  // namespace

struct BlockDecoder::State {
  std::vector<OpenRegion> open;
  std::vector<Shape> shapes;
  std::vector<Operation> operations;
  ColumnCursor column[kColumnCount];
  const uint8_t* payload_end = nullptr;
  uint64_t previous_end_ticks = 0;
  uint32_t records_left = 0;

  Status read_open_regions(std::span<const uint8_t>* rest);
  Status read_shapes(uint32_t count);
  Status read_operations(uint32_t count);
  bool take_time(Column low, Column high, uint32_t bytes, uint64_t* value);
  bool apply_changes(Shape* shape, uint32_t mask);
  bool take_record(Record* out);
};

Status BlockDecoder::State::read_open_regions(std::span<const uint8_t>* rest) {
  uint32_t count = 0;
  if (rest->size() < sizeof(count)) return damaged("no count of open regions");
  std::memcpy(&count, rest->data(), sizeof(count));
  *rest = rest->subspan(sizeof(count));
  if (count > kMaxOpenRegions || rest->size() < count * sizeof(OpenRegionEntry)) {
    return damaged("too many open regions");
  }
  open.clear();
  for (uint32_t i = 0; i < count; ++i) {
    OpenRegionEntry entry;
    std::memcpy(&entry, rest->data() + i * sizeof(entry), sizeof(entry));
    open.push_back({entry.region, uint64_t{entry.start_high} << 32 | entry.start_low});
  }
  *rest = rest->subspan(count * sizeof(OpenRegionEntry));
  return {};
}

Status BlockDecoder::State::read_shapes(uint32_t count) {
  ColumnCursor& from = column[kColumnShapes];
  shapes.clear();
  for (uint32_t i = 0; i < count; ++i) {
    if (from.left() < 2) return damaged("shapes cut off");
    Shape shape{};
    RecordHead& head = shape.last.head;
    head.kind = static_cast<RecordKind>(*from.at++);
    head.slot_count = *from.at++;
    uint64_t flags = 0;
    uint64_t id = 0;
    if (!get_varint(&from.at, from.end, &flags) || !get_varint(&from.at, from.end, &id)) {
      return damaged("shapes cut off");
    }
    if (flags > UINT16_MAX || id > UINT32_MAX) return damaged("shape out of range");
    head.flags = static_cast<uint16_t>(flags);
    head.id = static_cast<uint32_t>(id);
    if (!is_valid(head)) return damaged("invalid shape");
    shape.pairs = pair_words(head.kind) << 2;
    shapes.push_back(shape);
  }
  return {};
}

Status BlockDecoder::State::read_operations(uint32_t count) {
  ColumnCursor& from = column[kColumnOperations];
  operations.clear();
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t shape = 0;
    uint64_t mask = 0;
    if (!get_varint(&from.at, from.end, &shape) || !get_varint(&from.at, from.end, &mask)) {
      return damaged("operations cut off");
    }
    if (shape >= shapes.size()) return damaged("operation without shape");
    if (mask >> field_count(shapes[shape].last.head.slot_count) != 0) {
      return damaged("operation on fields that are not there");
    }
    operations.push_back({static_cast<uint32_t>(shape), static_cast<uint32_t>(mask)});
  }
  return {};
}

inline bool BlockDecoder::State::take_time(Column low, Column high, uint32_t bytes,
                                           uint64_t* value) {
  const uint32_t has_low = bytes != 0;
  const uint32_t high_bytes = bytes - has_low;
  ColumnCursor& l = column[low];
  ColumnCursor& h = column[high];
  if (__builtin_expect(l.left() < has_low || h.left() < high_bytes, 0)) return false;
  const uint64_t low_byte = load_bytes(l.at, has_low, payload_end);
  *value = load_bytes(h.at, high_bytes, payload_end) << 8 | low_byte;
  l.at += has_low;
  h.at += high_bytes;
  return true;
}

/// Applies the deltas of the fields in `mask` to the shape's last record.
inline bool BlockDecoder::State::apply_changes(Shape* shape, uint32_t mask) {
  ColumnCursor& from = column[kColumnValues];
  uint64_t delta = 0;
  if ((mask & 1) != 0) {
    if (!get_varint(&from.at, from.end, &delta)) return false;
    shape->last.head.a32 += unzigzag32(static_cast<uint32_t>(delta));
    mask &= mask - 1;
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto field = static_cast<uint32_t>(__builtin_ctz(mask));
    uint64_t* value = field == 1 ? &shape->last.head.a64 : &shape->last.words[field - 2];
    if (!get_varint(&from.at, from.end, &delta)) return false;
    if ((shape->pairs >> field & 1) == 0) {
      *value += unzigzag(delta);
      continue;
    }
    uint64_t high = 0;
    if (!get_varint(&from.at, from.end, &high)) return false;
    const auto low_half = static_cast<uint32_t>(*value) + unzigzag32(static_cast<uint32_t>(delta));
    const auto high_half =
        static_cast<uint32_t>(*value >> 32) + unzigzag32(static_cast<uint32_t>(high));
    *value = uint64_t{high_half} << 32 | low_half;
  }
  return true;
}

inline bool BlockDecoder::State::take_record(Record* out) {
  uint64_t code = 0;
  ColumnCursor& codes = column[kColumnCodes];
  ColumnCursor& lengths = column[kColumnLengths];
  if (!get_varint(&codes.at, codes.end, &code) || code >= operations.size()) return false;
  if (lengths.left() == 0) return false;
  const uint32_t start_bytes = *lengths.at & 0xfu;
  const uint32_t duration_bytes = *lengths.at >> 4;
  ++lengths.at;
  if (start_bytes > 8 || duration_bytes > 4) return false;
  const Operation operation = operations[code];
  Shape& shape = shapes[operation.shape];
  if (operation.mask != 0 && !apply_changes(&shape, operation.mask)) return false;
  uint64_t start = 0;
  uint64_t duration = 0;
  if (!take_time(kColumnStartsLow, kColumnStartsHigh, start_bytes, &start)) return false;
  if (!take_time(kColumnDurationsLow, kColumnDurationsHigh, duration_bytes, &duration))
    return false;
  std::memcpy(out, &shape.last, sizeof(*out));
  out->head.start_ticks = previous_end_ticks + unzigzag(start);
  out->head.duration_ticks = static_cast<uint32_t>(duration);
  previous_end_ticks = out->head.start_ticks + duration;
  if (__builtin_expect((out->head.flags & kWideDuration) != 0, 0)) {
    previous_end_ticks = end_ticks(*out);
  }
  return true;
}

BlockDecoder::BlockDecoder() : state_(std::make_unique<State>()) {}
BlockDecoder::~BlockDecoder() = default;
BlockDecoder::BlockDecoder(BlockDecoder&&) noexcept = default;
BlockDecoder& BlockDecoder::operator=(BlockDecoder&&) noexcept = default;

Status BlockDecoder::begin(std::span<const uint8_t> payload, uint32_t record_count) {
  State& s = *state_;
  s.records_left = 0;
  s.previous_end_ticks = 0;
  s.payload_end = payload.data() + payload.size();
  if (Status status = s.read_open_regions(&payload); !status) return status;
  ColumnHeader header;
  if (payload.size() < sizeof(header)) return damaged("no column header");
  std::memcpy(&header, payload.data(), sizeof(header));
  payload = payload.subspan(sizeof(header));
  if (record_count > kMaxBlockRecords || header.shape_count > kMaxBlockRecords ||
      header.operation_count > kMaxBlockRecords) {
    return damaged("counts out of range");
  }
  for (uint32_t i = 0; i < kColumnCount; ++i) {
    if (header.bytes[i] > payload.size()) return damaged("column cut off");
    s.column[i] = {payload.data(), payload.data() + header.bytes[i]};
    payload = payload.subspan(header.bytes[i]);
  }
  if (Status status = s.read_shapes(header.shape_count); !status) return status;
  if (Status status = s.read_operations(header.operation_count); !status) return status;
  s.records_left = record_count;
  return {};
}

std::span<const OpenRegion> BlockDecoder::open_regions() const { return state_->open; }

Result<size_t> BlockDecoder::next(std::span<Record> out) {
  State& s = *state_;
  const size_t count = std::min<size_t>(out.size(), s.records_left);
  for (size_t i = 0; i < count; ++i) {
    if (s.take_record(&out[i])) continue;
    s.records_left = 0;
    return damaged("records cut off");
  }
  s.records_left -= static_cast<uint32_t>(count);
  return count;
}

}  // namespace aon::spool
