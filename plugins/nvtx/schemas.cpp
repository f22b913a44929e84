#include "nvtx/schemas.h"

#include <string.h>

#include <atomic>

#include "nvtx/remarks.h"

namespace aon::nvtx {
namespace {

constexpr uint32_t kMaxSchemas = 1024;
constexpr uint32_t kTableSize = 2 * kMaxSchemas;  // never full: every search ends
constexpr uint32_t kMaxEntries = 4096;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  // larger offsets and lengths are not followed

constexpr uint64_t kUnknown = ~uint64_t{0};

struct Schema {
  const Domain* domain;
  uint64_t id;
  bool is_enum;
  std::atomic<bool> is_ambiguous;  ///< several of this id differ: nothing is read by them
  Layout layout;
};

Schema g_schemas[kMaxSchemas];
std::atomic<uint32_t> g_schema_count;
std::atomic<Schema*> g_table[kTableSize];  // open addressing; nothing is taken out
std::atomic<uint64_t> g_ids_given;

uint32_t table_index(const Domain* domain, uint64_t id) {
  const uint64_t key = (reinterpret_cast<uint64_t>(domain) ^ id << 16) * 0x9e3779b97f4a7c15ull;
  return static_cast<uint32_t>(key >> 53);
}
static_assert(kTableSize == 1u << (64 - 53));

bool is_same(const Schema& schema, const Domain* domain, uint64_t id) {
  return schema.id == id && schema.domain == domain;
}

/// The schema of this id, or null: also where it is not clear which.
const Schema* find_schema(const Domain* domain, uint64_t id) {
  for (uint32_t at = table_index(domain, id);; at = (at + 1) % kTableSize) {
    const Schema* schema = g_table[at].load(std::memory_order_acquire);  // pairs with nvtx:schema
    if (schema == nullptr) return nullptr;
    if (!is_same(*schema, domain, id)) continue;
    return schema->is_ambiguous.load(std::memory_order_relaxed) ? nullptr : schema;
  }
}

/// A schema of its own for the caller, or null.
Schema* take() {
  if (g_schema_count.load(std::memory_order_relaxed) >= kMaxSchemas) return nullptr;
  const uint32_t at = g_schema_count.fetch_add(1, std::memory_order_relaxed);
  return at < kMaxSchemas ? &g_schemas[at] : nullptr;
}

/// Puts the schema into the table, where its domain and id are there once.
void keep(const Domain* domain, uint64_t id, bool is_enum, const Layout& layout) {
  Schema* schema = nullptr;
  for (uint32_t at = table_index(domain, id);; at = (at + 1) % kTableSize) {
    Schema* known = g_table[at].load(std::memory_order_acquire);  // pairs with nvtx:schema
    if (known == nullptr) {
      if (schema == nullptr) schema = take();
      if (schema == nullptr) return tell_unread_schemas();
      schema->domain = domain;
      schema->id = id;
      schema->is_enum = is_enum;
      schema->layout = layout;
      if (g_table[at].compare_exchange_strong(
              known, schema, std::memory_order_release,
              std::memory_order_acquire)) {  // pairs with nvtx:schema
        return;
      }
    }
    if (!is_same(*known, domain, id)) continue;
    if (memcmp(&known->layout, &layout, sizeof layout) != 0) {
      known->is_ambiguous.store(true, std::memory_order_relaxed);
      tell_unread_schemas();
    }
    return;
  }
}

uint64_t id_of(bool is_chosen, uint64_t chosen) {
  if (is_chosen && chosen != 0) return chosen;
  return kFirstDynamicId + g_ids_given.fetch_add(1, std::memory_order_relaxed);
}

/// An entry without its offset, and its alignment. Of no bytes when the payload says how many.
Field shape_of(const Domain* domain, const SchemaEntry& entry, uint64_t* alignment) {
  Field type = basic_type(entry.type);
  if (type.bytes == 0) {
    const Schema* schema = find_schema(domain, static_cast<uint64_t>(entry.type));
    if (schema != nullptr && schema->is_enum) type = schema->layout.number;
  }
  *alignment = type.bytes;
  if ((entry.flags & kIsOffset) != 0) return {};
  if ((entry.flags & kIsPointer) != 0) {
    *alignment = sizeof(void*);
    return {Kind::kOther, sizeof(void*), 0};
  }
  const uint64_t array = entry.flags & kArrayMask;
  if (array != 0 && array != kFixedArray) return {};
  if (entry.item_count >= kMaxBytes) return {};
  const uint32_t count = static_cast<uint32_t>(entry.item_count);
  const bool is_array_of_char = entry.type == EntryType::kChar && array != 0;
  if ((type.kind == Kind::kText || is_array_of_char) && count != 0) {
    *alignment = 1;
    return {Kind::kFixedText, count, 0};
  }
  if (array == 0) return type;
  return type.bytes * entry.item_count < kMaxBytes ? Field{Kind::kOther, type.bytes * count, 0}
                                                   : Field{};
}

bool is_text(const Field& field) {
  return field.kind == Kind::kText || field.kind == Kind::kFixedText ||
         field.kind == Kind::kRegistered;
}

/// Notes the entry if it is one that is taken. Returns whether it is a number.
bool note(const SchemaEntry& entry, const Field& field, Layout* layout) {
  const uint64_t role = entry.flags & kRoleMask;
  if (role == kIsMessage) {
    if (is_text(field)) layout->message = field;
    return false;
  }
  if (field.kind == Kind::kCategory) layout->category = field;
  if (!is_number(field) || role != 0 || (entry.flags & kIsHidden) != 0) return false;
  layout->number = field;
  return true;
}

uint64_t aligned(uint64_t offset, uint64_t alignment) {
  if (offset == kUnknown || alignment == 0) return kUnknown;
  return (offset + alignment - 1) / alignment * alignment;
}

void read_entries(const Domain* domain, const SchemaAttributes& attributes, Layout* layout) {
  const uint64_t packed = (attributes.fields & kSchemaAlignment) != 0 ? attributes.alignment : 0;
  const size_t count = attributes.entry_count < kMaxEntries ? attributes.entry_count : kMaxEntries;
  int numbers = 0;
  uint64_t end = 0;  // of the entry before
  for (size_t i = 0; i < count; ++i) {
    const SchemaEntry& entry = attributes.entries[i];
    uint64_t alignment = 0;
    Field field = shape_of(domain, entry, &alignment);
    if (packed != 0 && packed < alignment) alignment = packed;
    uint64_t offset = entry.offset;
    if (offset == 0 && i != 0) offset = aligned(end, alignment);
    if (offset >= kMaxBytes || field.bytes == 0) {
      end = kUnknown;
      continue;
    }
    field.offset = static_cast<uint32_t>(offset);
    numbers += note(entry, field, layout) ? 1 : 0;
    end = offset + field.bytes;
  }
  if (numbers != 1) layout->number = {};
}

}  // namespace

Field basic_type(EntryType type) {
  switch (type) {
    case EntryType::kChar:
    case EntryType::kByte:
      return {Kind::kOther, 1, 0};
    case EntryType::kUchar:
    case EntryType::kUint8:
      return {Kind::kUnsigned, 1, 0};
    case EntryType::kUshort:
    case EntryType::kUint16:
      return {Kind::kUnsigned, 2, 0};
    case EntryType::kUint:
    case EntryType::kUint32:
      return {Kind::kUnsigned, 4, 0};
    case EntryType::kUlong:
    case EntryType::kUlongLong:
    case EntryType::kUint64:
    case EntryType::kSize:
    case EntryType::kAddress:
      return {Kind::kUnsigned, 8, 0};
    case EntryType::kInt8:
      return {Kind::kSigned, 1, 0};
    case EntryType::kShort:
    case EntryType::kInt16:
      return {Kind::kSigned, 2, 0};
    case EntryType::kInt:
    case EntryType::kInt32:
      return {Kind::kSigned, 4, 0};
    case EntryType::kLong:
    case EntryType::kLongLong:
    case EntryType::kInt64:
      return {Kind::kSigned, 8, 0};
    case EntryType::kFloat:
    case EntryType::kFloat32:
      return {Kind::kReal, 4, 0};
    case EntryType::kDouble:
    case EntryType::kFloat64:
      return {Kind::kReal, 8, 0};
    case EntryType::kCategory:
      return {Kind::kCategory, 4, 0};
    case EntryType::kColor:
    case EntryType::kPid32:
    case EntryType::kTid32:
      return {Kind::kOther, 4, 0};
    case EntryType::kScope:
    case EntryType::kPid64:
    case EntryType::kTid64:
      return {Kind::kOther, 8, 0};
    case EntryType::kText:
    case EntryType::kTextUtf8:
      return {Kind::kText, 8, 0};
    case EntryType::kRegisteredString:
      return {Kind::kRegistered, 8, 0};
  }
  return {};
}

uint64_t register_schema(const Domain* domain, const SchemaAttributes* attributes) {
  if (attributes == nullptr) return 0;
  const uint64_t fields = attributes->fields;
  const auto has = [fields](uint64_t mask) { return (fields & mask) == mask; };
  Layout layout = {};
  if (has(kSchemaName) && attributes->name != nullptr) {
    memcpy(layout.name, attributes->name, strnlen(attributes->name, sizeof layout.name - 1));
  }
  const bool is_union =
      has(kSchemaType) && attributes->type != kStaticSchema && attributes->type != kDynamicSchema;
  if (has(kSchemaEntries | kSchemaEntryCount) && attributes->entries != nullptr && !is_union) {
    read_entries(domain, *attributes, &layout);
  }
  const uint64_t id = id_of(has(kSchemaId), attributes->id);
  keep(domain, id, false, layout);
  return id;
}

uint64_t register_enum(const Domain* domain, const EnumAttributes* attributes) {
  if (attributes == nullptr) return 0;
  const uint64_t fields = attributes->fields;
  const uint64_t bytes = (fields & kEnumBytes) != 0 ? attributes->bytes : 0;
  Layout layout = {};
  if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) {
    layout.number.kind = Kind::kUnsigned;
    layout.number.bytes = static_cast<uint32_t>(bytes);
  }
  const uint64_t id = id_of((fields & kEnumId) != 0, attributes->id);
  keep(domain, id, true, layout);
  return id;
}

const Layout* find_layout(const Domain* domain, uint64_t schema) {
  const Schema* known = find_schema(domain, schema);
  return known != nullptr ? &known->layout : nullptr;
}

}  // namespace aon::nvtx
