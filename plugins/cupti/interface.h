/// The part of CUPTI that we use, in our own words: nothing of NVIDIA is needed to build, and one
/// build serves every version. Source: cupti_activity.h, cupti_callbacks.h and cupti_result.h of
/// CUDA 13.0 (CUPTI 130001).
///
/// Of records only fields are read that have kept their place since CUDA 11 (records grow at their
/// end); those of graphs where the version has them (`Quirks::has_graph_fields`). Its length is
/// CUPTI's secret: cuptiActivityGetNextRecord() steps. Layout only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::cupti {

/// CUptiResult.
using Code = int32_t;
constexpr Code kSuccess = 0;
constexpr Code kNotCompatible = 14;
constexpr Code kNotInitialized = 15;
constexpr Code kNotSupported = 27;
constexpr Code kSubscribed = 39;  ///< CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED

/// CUresult and cudaError_t, which have the same numbers.
constexpr int32_t kCaptureInvalidated = 901;
constexpr int32_t kCaptureUnjoined = 904;

enum class Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kMemcpy2 = 22,  ///< between devices
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kGraphTrace = 51,
};

/// Offsets of the fields of a record; the kind is at 0.
namespace kernel {
constexpr size_t kRegisters = 6;  // u16, per thread
constexpr size_t kStart = 16, kEnd = 24, kDevice = 40, kContext = 44, kStream = 48;
constexpr size_t kGrid = 52, kBlock = 64, kStaticShared = 76, kDynamicShared = 80;  // 3, 3, i32
constexpr size_t kCorrelation = 92, kName = 104;
constexpr size_t kGraphNode = 144, kGraph = 156;
}  // namespace kernel
namespace memcpy1 {
constexpr size_t kCopyKind = 4, kFrom = 5, kTo = 6, kBytes = 8;  // u8, u8, u8
constexpr size_t kStart = 16, kEnd = 24, kDevice = 32, kContext = 36, kStream = 40;
constexpr size_t kCorrelation = 44, kGraphNode = 64, kGraph = 72;
}  // namespace memcpy1
namespace memcpy2 {  // as memcpy1 to the stream
constexpr size_t kCorrelation = 60, kGraphNode = 72, kGraph = 80;
}  // namespace memcpy2
namespace set {
constexpr size_t kBytes = 8, kStart = 16, kEnd = 24, kDevice = 32, kContext = 36, kStream = 40;
constexpr size_t kCorrelation = 44, kMemory = 50, kGraphNode = 64, kGraph = 72;  // u16 memory
}  // namespace set
namespace api {
constexpr size_t kFunction = 4, kStart = 8, kEnd = 16, kThread = 28, kCorrelation = 32;
constexpr size_t kResult = 36;  // i32, 0: it worked
}  // namespace api
namespace graph {
constexpr size_t kCorrelation = 4, kStart = 8, kEnd = 16, kDevice = 24, kGraph = 28;
constexpr size_t kContext = 32, kStream = 36;
}  // namespace graph
namespace synchronization {
constexpr size_t kType = 4, kStart = 8, kEnd = 16, kCorrelation = 24, kContext = 28, kStream = 32;
}  // namespace synchronization
namespace overhead {
constexpr size_t kType = 4, kObject = 8, kThread = 16, kStart = 24, kEnd = 32;
constexpr uint32_t kThreadObject = 2;  ///< CUPTI_ACTIVITY_OBJECT_THREAD
}  // namespace overhead
namespace external {
constexpr size_t kKind = 4, kId = 8, kCorrelation = 16;
}  // namespace external

/// CUpti_ActivityAttribute. Those from 12 on came with 13.2 and 13.3, in this order.
enum class Attribute : int32_t {
  kDeviceBuffers = 2,  ///< at most, of a context
  kZeroedBuffers = 5,
  kPinnedBuffers = 8,
  kAllSyncRecords = 16,
  kGraphsAsOne = 20,  ///< of all subscribers: decided before the first kind is enabled
  kThreadIdType = 21,
};

/// CUpti_CallbackDomain and what we want of it.
constexpr int32_t kDriverDomain = 1;
constexpr int32_t kRuntimeDomain = 2;
constexpr int32_t kStateDomain = 6;
constexpr uint32_t kFatalError = 1;

/// CUpti_CallbackData, of a callback of a call. The site is a CUpti_ApiCallbackSite; the parameters
/// are a struct of the function's.
namespace call_data {
constexpr size_t kSite = 0, kParameters = 16;
}  // namespace call_data
constexpr int32_t kCallBegins = 0;

/// CUpti_ActivityThreadIdType: what gettid() returns.
constexpr int32_t kDefaultThreadIds = 0;
constexpr int32_t kSystemThreadIds = 1;

constexpr uint32_t kFlushComplete = 0;
constexpr uint32_t kFlushForced = 1;

using Subscriber = void*;
using Callback = void (*)(void* user, int32_t domain, uint32_t id, const void* data);
using RequestBuffer = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                size_t valid_bytes);
// Of cuptiActivityRegisterCallbacks_v2; what is behind `info` we do not read.
using RequestBufferV2 = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records, void* info);
using CompleteBufferV2 = void (*)(uint8_t* buffer, size_t bytes, size_t valid_bytes, void* info);

/// Of cuptiSubscribe_v2 (13.0 and later).
struct SubscriberParams {
  size_t struct_bytes;
  const char* name;
  char* old_name;  ///< who holds the subscription, when it is not us
  size_t old_name_bytes;
  uint8_t allows_others;  ///< 13.3 and later
  uint8_t padding[7];
};
/// `struct_bytes` of a version that knows no other subscribers.
constexpr size_t kLoneSubscriberBytes = offsetof(SubscriberParams, allows_others);

}  // namespace aon::cupti
