/// The part of NVTX 3's interface to tools that we use, in our own words: nothing of NVTX is needed
/// to build. Source: nvtx3/nvToolsExt.h and nvtxDetail/nvtxTypes.h of CUDA 13.0 (NVTX 3.2); the
/// layouts have not changed since NVTX 3.0. Layout only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::nvtx {

/// Ids of export tables.
constexpr uint32_t kCallbacksTable = 1;
constexpr uint32_t kVersionTable = 3;

enum class Module : int32_t { kCore = 1, kCuda = 2, kCudaRuntime = 4, kCore2 = 5 };

/// Places in the function table of Module::kCore.
enum class Core : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
};
/// Of Module::kCore2.
enum class Core2 : uint32_t {
  kMarkEx = 1,
  kRangeStartEx,
  kRangeEnd,
  kRangePushEx,
  kRangePop,
  kResourceCreate,
  kResourceDestroy,
  kNameCategoryA,
  kNameCategoryW,
  kRegisterStringA,
  kRegisterStringW,
  kCreateA,
  kCreateW,
  kDestroy,
  kInitialize,
};
/// Of Module::kCuda: device, context, stream, event, each A and W; of Module::kCudaRuntime the same
/// without context.
enum class Cuda : uint32_t { kDeviceA = 1, kContextA = 3, kStreamA = 5, kEventA = 7 };
enum class CudaRuntime : uint32_t { kDeviceA = 1, kStreamA = 3, kEventA = 5 };

using Function = void (*)();
using FunctionTable = Function**;  ///< places of the pointers that NVTX calls

struct Callbacks {
  size_t struct_bytes;
  int (*get_function_table)(Module module, FunctionTable* table, uint32_t* count);
};
static_assert(sizeof(Callbacks) == 16);

struct Version {
  size_t struct_bytes;
  uint32_t version;
  uint32_t reserved;
  void (*set_injection_version)(uint32_t version);
};
static_assert(sizeof(Version) == 24 && offsetof(Version, set_injection_version) == 16);

using GetExportTable = const void* (*)(uint32_t id);

enum class PayloadType : int32_t {
  kNone = 0,
  kUint64,
  kInt64,
  kDouble,
  kUint32,
  kInt32,
  kFloat,
  kExtended = static_cast<int32_t>(0xdfbd0009),  ///< of the payload extension (extension.h)
};
enum class MessageType : int32_t { kNone = 0, kAscii, kWide, kRegistered };

struct Domain;
struct RegisteredString;

union Message {
  const char* ascii;
  const wchar_t* wide;
  const RegisteredString* registered;
};

struct EventAttributes {
  uint16_t version;
  uint16_t struct_bytes;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  PayloadType payload_type;
  int32_t payload_count;  ///< of an extended payload
  uint64_t payload;       ///< a union of numbers of 4 and 8 bytes; the address of extended ones
  MessageType message_type;
  Message message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, category) == 4);
static_assert(offsetof(EventAttributes, payload_type) == 16 &&
              offsetof(EventAttributes, payload) == 24 &&
              offsetof(EventAttributes, message_type) == 32 &&
              offsetof(EventAttributes, message) == 40);

enum class ResourceType : int32_t { kThreadNative = 0x10003 };

struct ResourceAttributes {
  uint16_t version;
  uint16_t struct_bytes;
  ResourceType identifier_type;
  uint64_t identifier;
  MessageType message_type;
  Message message;
};
static_assert(sizeof(ResourceAttributes) == 32 && offsetof(ResourceAttributes, identifier) == 8);
static_assert(offsetof(ResourceAttributes, message_type) == 16 &&
              offsetof(ResourceAttributes, message) == 24);

}  // namespace aon::nvtx
