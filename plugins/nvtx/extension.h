/// Extensions of NVTX 3, of which we take the payload extension, in our own words as interface.h.
/// Source: nvtx3/nvToolsExtPayload.h and nvtxDetail/nvtxExtTypes.h of CUDA 13.0 (NVTX 3.2, version
/// 0x0104 of the extension) and of NVTX 3.1 (0x0103), whose first headers had two functions and the
/// same layouts. Layout only.
///
/// Each library that contains an extension offers its table once, at the first call of one of its
/// functions; a place that stays 0 becomes "do nothing". Memory (1) and counters (4) are extensions
/// of their own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::nvtx {

enum class ExtensionId : uint16_t { kPayload = 2 };

/// Versions of the payload extension whose first functions are these.
constexpr uint16_t kFirstPayloadVersion = 0x0103;
constexpr uint16_t kNextPayloadVersion = 0x0200;

/// Places in the table of the payload extension, from 0. Those behind are of deferred events.
enum class Payload : uint32_t {
  kSchemaRegister,
  kEnumRegister,
  kMark,
  kRangePush,
  kRangePop,
  kRangeStart,
  kRangeEnd,
  kDomainIsEnabled,
};

struct ExtensionSegment {
  size_t id;
  size_t slot_count;
  intptr_t* slots;  ///< functions
};
static_assert(sizeof(ExtensionSegment) == 24 && offsetof(ExtensionSegment, slots) == 16);

struct ExtensionModule {
  uint16_t nvtx_version;
  uint16_t struct_bytes;
  ExtensionId id;
  uint16_t version;
  size_t segment_count;
  ExtensionSegment* segments;
  intptr_t (*get_export)(uint32_t id);
  const void* types;  ///< sizes of basic types
};
static_assert(sizeof(ExtensionModule) == 40 && offsetof(ExtensionModule, id) == 4);
static_assert(offsetof(ExtensionModule, segment_count) == 8 &&
              offsetof(ExtensionModule, segments) == 16);

/// One of the payloads of an event.
struct PayloadData {
  uint64_t schema;  ///< an EntryType or the id of a schema
  size_t bytes;     ///< SIZE_MAX: not said
  const void* data;
};
static_assert(sizeof(PayloadData) == 24 && offsetof(PayloadData, data) == 16);

enum class EntryType : uint64_t {
  kChar = 1,
  kUchar,
  kShort,
  kUshort,
  kInt,
  kUint,
  kLong,
  kUlong,
  kLongLong,
  kUlongLong,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kSize = 22,
  kAddress,
  kByte = 32,
  kFloat32 = 43,
  kFloat64,
  kCategory = 68,
  kColor,
  kScope,
  kPid32,
  kPid64,
  kTid32,
  kTid64,
  kText,
  kTextUtf8,
  kRegisteredString = 80,
};
constexpr uint64_t kFirstStaticId = uint64_t{1} << 24;   ///< chosen by the program, per domain
constexpr uint64_t kFirstDynamicId = uint64_t{1} << 32;  ///< by the tool

// SchemaEntry::flags
constexpr uint64_t kIsPointer = 1u << 1;
constexpr uint64_t kIsOffset = 3u << 2;
constexpr uint64_t kArrayMask = 7u << 4;
constexpr uint64_t kFixedArray = 1u << 4;
constexpr uint64_t kIsHidden = 1u << 9;
constexpr uint64_t kRoleMask = 3u << 10;
constexpr uint64_t kIsMessage = 1u << 10;

struct SchemaEntry {
  uint64_t flags;
  EntryType type;  ///< or the id of a schema or an enum
  const char* name;
  const char* description;
  uint64_t item_count;  ///< of an array, or bytes of a text
  uint64_t offset;      ///< 0, but in the first entry: behind the one before, by its alignment
  const void* semantics;
  const void* reserved;
};
static_assert(sizeof(SchemaEntry) == 64 && offsetof(SchemaEntry, type) == 8);
static_assert(offsetof(SchemaEntry, item_count) == 32 && offsetof(SchemaEntry, offset) == 40);

// SchemaAttributes::fields: which are set
constexpr uint64_t kSchemaName = 1u << 1;
constexpr uint64_t kSchemaType = 1u << 2;
constexpr uint64_t kSchemaEntries = 1u << 4;
constexpr uint64_t kSchemaEntryCount = 1u << 5;
constexpr uint64_t kSchemaAlignment = 1u << 7;
constexpr uint64_t kSchemaId = 1u << 8;

// SchemaAttributes::type; others are unions
constexpr uint64_t kStaticSchema = 1;
constexpr uint64_t kDynamicSchema = 2;

struct SchemaAttributes {
  uint64_t fields;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t bytes;
  size_t alignment;  ///< of packed structures; 0: the natural one
  uint64_t id;       ///< the last that version 0x0103 has
};
static_assert(sizeof(SchemaAttributes) == 72 && offsetof(SchemaAttributes, entries) == 32);
static_assert(offsetof(SchemaAttributes, entry_count) == 40 &&
              offsetof(SchemaAttributes, alignment) == 56 && offsetof(SchemaAttributes, id) == 64);

// EnumAttributes::fields
constexpr uint64_t kEnumBytes = 1u << 4;
constexpr uint64_t kEnumId = 1u << 5;

struct EnumAttributes {
  uint64_t fields;
  const char* name;
  const void* entries;
  size_t entry_count;
  size_t bytes;
  uint64_t id;
};
static_assert(sizeof(EnumAttributes) == 48 && offsetof(EnumAttributes, bytes) == 32 &&
              offsetof(EnumAttributes, id) == 40);

}  // namespace aon::nvtx
