/// Schemas of the payload extension. Of the payloads of a schema we take what names the event
/// (message and category) and its number, if it has exactly one: where these lie is worked out when
/// the schema is registered.
/// Thread: any, no lock.   Signal: safe.   Cost: a search in a hash table; 128 KiB for them.
#pragma once

#include "nvtx/extension.h"
#include "nvtx/interface.h"

namespace aon::nvtx {

/// What is read of a payload, and how. kText is a pointer.
enum class Kind : uint32_t {
  kOther,
  kUnsigned,
  kSigned,
  kReal,
  kCategory,
  kText,
  kFixedText,
  kRegistered,
};

/// What lies where in a payload; of no bytes when there is none.
struct Field {
  Kind kind;
  uint32_t bytes;
  uint32_t offset;
};

struct Layout {
  Field message;
  Field category;
  Field number;
  char name[48];  ///< the schema's, cut
};
static_assert(sizeof(Layout) == 84);  // without gaps: compared as bytes

inline bool is_number(const Field& field) {
  return field.kind == Kind::kUnsigned || field.kind == Kind::kSigned || field.kind == Kind::kReal;
}

/// A basic type, whose alignment is its size; of no bytes when it is not known.
Field basic_type(EntryType type);

/// Takes the schema and returns its id: the program's, or one of ours; 0 for null. Without room for
/// it its payloads say nothing. Nor do they if one domain has two schemas of one id that differ.
/// The ledger says so: the first time this locks.
uint64_t register_schema(const Domain* domain, const SchemaAttributes* attributes);
/// The same of an enum, which is a number in schemas.
uint64_t register_enum(const Domain* domain, const EnumAttributes* attributes);

/// The layout of payloads of a registered schema, or null.
const Layout* find_layout(const Domain* domain, uint64_t schema);

}  // namespace aon::nvtx
