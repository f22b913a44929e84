/// CUPTI's PM sampling and profiler host functions as far as we call them: own declarations, so
/// that nothing of CUDA is needed to build. Each structure begins with its own size, as far as its
/// last field: CUPTI reads and writes no further. `tests/unit/gpu_counters` compares them with
/// NVIDIA's headers (cupti_pmsampling.h, cupti_profiler_host.h, cupti_target.h), where these are
/// installed.
/// Depends on nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::gpu_counters {

/// CUptiResult.
enum Code : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kNotInitialized = 15,
  kHardwareBusy = 26,
  kNotSupported = 27,
  kInsufficientPrivileges = 35,
  kLegacyNotSupported = 38,
  kInvalidChipName = 46,
  kUnknown = 999
};

/// CUPTI of CUDA 12.8. Before it samples may be those of another GPU, where there are several, and
/// SetConfig has no `append` (NVIDIA's release notes).
constexpr uint32_t kFirstVersion = 26;

enum ProfilerType : int { kRangeProfiler = 0, kPmSampling = 1 };
enum TriggerMode : int { kSysclkInterval = 0, kTimeInterval = 1 };
enum AppendMode : int { kKeepOldest = 0, kKeepLatest = 1 };
enum StopReason : int { kOther = 0, kDataFull = 1, kEndOfRecords = 2 };

struct Initialize {
  size_t struct_bytes;
  void* reserved;
};
struct ChipName {
  size_t struct_bytes;
  void* reserved;
  size_t device;
  const char* name;  ///< out
};
struct SupportedChips {
  size_t struct_bytes;
  void* reserved;
  size_t count;              ///< out
  const char* const* names;  ///< out
};
struct HostInitialize {
  size_t struct_bytes;
  void* reserved;
  int type;  ///< ProfilerType
  const char* chip;
  const uint8_t* availability;
  void* host;  ///< out
};
struct HostDeinitialize {
  size_t struct_bytes;
  void* reserved;
  void* host;
};
struct AddMetrics {
  size_t struct_bytes;
  void* reserved;
  void* host;
  const char** names;
  size_t count;
};
struct ConfigImageSize {
  size_t struct_bytes;
  void* reserved;
  void* host;
  size_t bytes;  ///< out
};
struct ConfigImage {
  size_t struct_bytes;
  void* reserved;
  void* host;
  size_t bytes;
  uint8_t* image;
};
struct PassCount {
  size_t struct_bytes;
  void* reserved;
  size_t bytes;
  uint8_t* image;
  size_t passes;  ///< out
};
struct Evaluate {
  size_t struct_bytes;
  void* reserved;
  void* host;
  const uint8_t* data;
  size_t data_bytes;
  size_t index;
  const char** names;
  size_t count;
  double* values;  ///< out
};
struct Availability {
  size_t struct_bytes;
  void* reserved;
  size_t device;
  size_t bytes;
  uint8_t* image;
};
struct Enable {
  size_t struct_bytes;
  void* reserved;
  size_t device;
  void* sampling;  ///< out
};
/// Disable, start, stop.
struct OfSampling {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
};
struct SetConfig {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
  size_t config_bytes;
  const uint8_t* config;
  size_t buffer_bytes;
  uint64_t interval;
  int trigger;  ///< TriggerMode
  int append;   ///< AppendMode
};
struct DataSize {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
  const char** names;
  size_t count;
  uint32_t max_samples;
  size_t bytes;  ///< out
};
struct DataInitialize {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
  size_t bytes;
  uint8_t* data;
};
struct Decode {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
  uint8_t* data;
  size_t bytes;
  int stop_reason;   ///< out, StopReason
  uint8_t overflow;  ///< out
};
struct DataInfo {
  size_t struct_bytes;
  void* reserved;
  const uint8_t* data;
  size_t bytes;
  size_t total;      ///< out
  size_t populated;  ///< out
  size_t completed;  ///< out
};
struct SampleInfo {
  size_t struct_bytes;
  void* reserved;
  void* sampling;
  const uint8_t* data;
  size_t bytes;
  size_t index;
  uint64_t start_ns;  ///< out
  uint64_t end_ns;    ///< out
};

/// What `struct_bytes` of a structure is to be: up to the end of its last field, without padding.
template <class T>
constexpr size_t kSizeOf = sizeof(T);
template <>
inline constexpr size_t kSizeOf<Decode> = offsetof(Decode, overflow) + sizeof(uint8_t);

/// A structure with its size set.
template <class T>
T sized() {
  T made = {};
  made.struct_bytes = kSizeOf<T>;
  return made;
}

/// X(member, symbol, structure)
#define AON_PM_FUNCTIONS(X)                                                     \
  X(version, cuptiGetVersion, uint32_t)                                         \
  X(supported_chips, cuptiProfilerHostGetSupportedChips, SupportedChips)        \
  X(host_initialize, cuptiProfilerHostInitialize, HostInitialize)               \
  X(host_deinitialize, cuptiProfilerHostDeinitialize, HostDeinitialize)         \
  X(add_metrics, cuptiProfilerHostConfigAddMetrics, AddMetrics)                 \
  X(config_image_size, cuptiProfilerHostGetConfigImageSize, ConfigImageSize)    \
  X(config_image, cuptiProfilerHostGetConfigImage, ConfigImage)                 \
  X(pass_count, cuptiProfilerHostGetNumOfPasses, PassCount)                     \
  X(evaluate, cuptiProfilerHostEvaluateToGpuValues, Evaluate)                   \
  X(initialize, cuptiProfilerInitialize, Initialize)                            \
  X(chip_name, cuptiDeviceGetChipName, ChipName)                                \
  X(availability, cuptiPmSamplingGetCounterAvailability, Availability)          \
  X(enable, cuptiPmSamplingEnable, Enable)                                      \
  X(disable, cuptiPmSamplingDisable, OfSampling)                                \
  X(set_config, cuptiPmSamplingSetConfig, SetConfig)                            \
  X(data_size, cuptiPmSamplingGetCounterDataSize, DataSize)                     \
  X(data_initialize, cuptiPmSamplingCounterDataImageInitialize, DataInitialize) \
  X(start, cuptiPmSamplingStart, OfSampling)                                    \
  X(stop, cuptiPmSamplingStop, OfSampling)                                      \
  X(decode, cuptiPmSamplingDecodeData, Decode)                                  \
  X(data_info, cuptiPmSamplingGetCounterDataInfo, DataInfo)                     \
  X(sample_info, cuptiPmSamplingCounterDataGetSampleInfo, SampleInfo)

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define AON_PM_MEMBER(member_, symbol_, structure_) int (*member_)(structure_*) = nullptr;
  AON_PM_FUNCTIONS(AON_PM_MEMBER)
#undef AON_PM_MEMBER
};

}  // namespace aon::gpu_counters
