#include <algorithm>
#include <cstring>

#include "core/spool/block_codec.h"
#include "core/spool/block_columns.h"

namespace aon::spool {
namespace {

static_assert(offsetof(Record, words) == offsetof(Record, head.a64) + 8);

/// A shape and its last record, complete but for the times.
struct Shape {
  Record last;
  uint32_t pairs;  ///< bit per field
  bool has_wide_duration;
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

/// The `bytes` (0-7) at `at` as a number. Touches eight bytes: begin() made sure of kPaddingBytes
/// behind the last column that is read like this.
inline uint64_t load_bytes(const uint8_t* at, uint32_t bytes) {
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  return value & ((uint64_t{1} << (8 * bytes)) - 1);
}

/// A time of `bytes` bytes from its two columns.
[[gnu::always_inline]] inline uint64_t take_time(ColumnCursor* low, ColumnCursor* high,
                                                 uint32_t bytes) {
  const uint32_t has_low = bytes != 0;
  const uint64_t low_byte = load_bytes(low->at, has_low);
  const uint64_t value = load_bytes(high->at, bytes - has_low) << 8 | low_byte;
  low->at += has_low;
  high->at += bytes - has_low;
  return value;
}

/// Field 1 is a64, the words follow it.
inline uint64_t* field_of(Record* record, uint32_t field) {
  auto* bytes = reinterpret_cast<char*>(record) + offsetof(RecordHead, a64);
  return reinterpret_cast<uint64_t*>(bytes + sizeof(uint64_t) * (field - 1));
}

/// Applies the deltas of the fields in `mask` to the shape's last record.
[[gnu::always_inline]] inline bool apply_changes(ColumnCursor* from, Shape* shape, uint32_t mask) {
  uint64_t delta = 0;
  if ((mask & 1) != 0) {
    if (!get_varint(&from->at, from->end, &delta)) return false;
    shape->last.head.a32 += unzigzag32(static_cast<uint32_t>(delta));
    mask &= mask - 1;
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto field = static_cast<uint32_t>(__builtin_ctz(mask));
    uint64_t* value = field_of(&shape->last, field);
    if (!get_varint(&from->at, from->end, &delta)) return false;
    if ((shape->pairs >> field & 1) == 0) {
      *value += unzigzag(delta);
      continue;
    }
    uint64_t high = 0;
    if (!get_varint(&from->at, from->end, &high)) return false;
    const auto low_half = static_cast<uint32_t>(*value) + unzigzag32(static_cast<uint32_t>(delta));
    const auto high_half =
        static_cast<uint32_t>(*value >> 32) + unzigzag32(static_cast<uint32_t>(high));
    *value = uint64_t{high_half} << 32 | low_half;
  }
  return true;
}

}  // namespace

struct BlockDecoder::State {
  std::vector<OpenRegion> open;
  std::vector<Shape> shapes;
  std::vector<Operation> operations;
  ColumnCursor column[kColumnCount];
  uint64_t previous_end_ticks = 0;
  uint32_t records_left = 0;

  Status read_open_regions(std::span<const uint8_t>* rest);
  Status read_shapes(uint32_t count);
  Status read_operations(uint32_t count);
  Status check_lengths(uint32_t record_count) const;
  bool take_record(ColumnCursor* columns, Record* out);
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
    shape.has_wide_duration = (head.flags & kWideDuration) != 0;
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

/// Checks the times of all records against their columns at once, so that take_record() need not.
Status BlockDecoder::State::check_lengths(uint32_t record_count) const {
  if (column[kColumnLengths].left() != record_count) return damaged("no length for each record");
  if (column[kColumnValues].left() < kPaddingBytes) return damaged("values cut off");
  uint32_t needed[4] = {};
  bool fits = true;
  for (const uint8_t* at = column[kColumnLengths].at; at != column[kColumnLengths].end; ++at) {
    const uint32_t start_bytes = *at & 0xfu;
    const uint32_t duration_bytes = *at >> 4;
    fits &= start_bytes <= 8 && duration_bytes <= 4;
    needed[0] += start_bytes != 0;
    needed[1] += start_bytes;
    needed[2] += duration_bytes != 0;
    needed[3] += duration_bytes;
  }
  fits &= needed[0] <= column[kColumnStartsLow].left();
  fits &= needed[1] - needed[0] <= column[kColumnStartsHigh].left();
  fits &= needed[2] <= column[kColumnDurationsLow].left();
  fits &= needed[3] - needed[2] <= column[kColumnDurationsHigh].left();
  return fits ? Status() : damaged("times cut off");
}

[[gnu::always_inline]] inline bool BlockDecoder::State::take_record(ColumnCursor* columns,
                                                                    Record* out) {
  uint64_t code = 0;
  if (!get_varint(&columns[kColumnCodes].at, columns[kColumnCodes].end, &code)) return false;
  if (code >= operations.size()) return false;
  const Operation operation = operations[code];
  Shape& shape = shapes[operation.shape];
  if (operation.mask != 0 && !apply_changes(&columns[kColumnValues], &shape, operation.mask)) {
    return false;
  }
  const uint8_t lengths = *columns[kColumnLengths].at++;
  const uint64_t start =
      take_time(&columns[kColumnStartsLow], &columns[kColumnStartsHigh], lengths & 0xfu);
  const uint64_t duration =
      take_time(&columns[kColumnDurationsLow], &columns[kColumnDurationsHigh], lengths >> 4);
  std::memcpy(out, &shape.last, sizeof(*out));
  const uint64_t start_ticks = previous_end_ticks + unzigzag(start);
  out->head.start_ticks = start_ticks;
  out->head.duration_ticks = static_cast<uint32_t>(duration);
  previous_end_ticks = start_ticks + duration;
  if (__builtin_expect(shape.has_wide_duration, 0)) previous_end_ticks = end_ticks(*out);
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
  if (Status status = s.check_lengths(record_count); !status) return status;
  s.column[kColumnValues].end -= kPaddingBytes;
  s.records_left = record_count;
  return {};
}

std::span<const OpenRegion> BlockDecoder::open_regions() const { return state_->open; }

Result<size_t> BlockDecoder::next(std::span<Record> out) {
  State& s = *state_;
  const size_t count = std::min<size_t>(out.size(), s.records_left);
  ColumnCursor columns[kColumnCount];
  std::copy(std::begin(s.column), std::end(s.column), columns);
  for (size_t i = 0; i < count; ++i) {
    if (s.take_record(columns, &out[i])) continue;
    s.records_left = 0;
    return damaged("records cut off");
  }
  std::copy(std::begin(columns), std::end(columns), s.column);
  s.records_left -= static_cast<uint32_t>(count);
  return count;
}

}  // namespace aon::spool
