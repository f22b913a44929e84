/// NVIDIA's management library (NVML) as far as we call it: own declarations, for its header is not
/// on machines that only run jobs. Names, values and layouts are those of nvml.h, which keeps them
/// from driver to driver; a function that is called with another layout gets another name (_v2).
///
/// Not used: the fields 251 to 253 (times of single slowdowns), which the header of CUDA 13 gives
/// other numbers than its drivers (269 to 271); and lists of processes, which take milliseconds
/// under the driver's lock.
/// Source: docs.nvidia.com/deploy/nvml-api. Depends on nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::nvml {

using Handle = void*;    ///< nvmlDevice_t
using EventSet = void*;  ///< nvmlEventSet_t
using Sample = void*;    ///< nvmlGpmSample_t

/// nvmlReturn_t.
enum Code : uint32_t {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kVersionMismatch = 18,  ///< library and driver are of different versions
  kInUse = 19,
  kNoData = 21,
  kUnknown = 999
};

constexpr uint32_t kUuidBytes = 96;
constexpr uint32_t kNameBytes = 96;
constexpr uint32_t kVersionBytes = 80;

constexpr uint32_t kTemperatureGpu = 0;
constexpr uint32_t kClockSm = 1;
constexpr uint32_t kClockMemory = 2;
constexpr uint32_t kPcieSent = 0;
constexpr uint32_t kPcieReceived = 1;
constexpr uint32_t kEccCorrected = 0;
constexpr uint32_t kEccUncorrected = 1;
constexpr uint32_t kEccVolatile = 0;  ///< since the driver was loaded
constexpr uint32_t kMigEnabled = 1;
constexpr uint64_t kEventXid = 8;

/// Fields of nvmlDeviceGetFieldValues.
constexpr uint32_t kFieldThrottledPower = 74;    ///< ns, cumulative
constexpr uint32_t kFieldThrottledThermal = 75;  ///< ns, cumulative
constexpr uint32_t kFieldMemoryTemperature = 82;
constexpr uint32_t kFieldNvlinkSent = 138;      ///< KiB, cumulative
constexpr uint32_t kFieldNvlinkReceived = 139;  ///< KiB, cumulative
constexpr uint32_t kAllLinks = 0xffffffffu;     ///< scope of the last two

struct PciInfo {
  char bus_id_legacy[16];
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t pci_device_id;
  uint32_t pci_subsystem_id;
  char bus_id[32];  ///< "00000000:17:00.0"
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct MemoryInfo {
  uint64_t total_bytes;
  uint64_t free_bytes;
  uint64_t used_bytes;
};
static_assert(sizeof(MemoryInfo) == 24);

struct Utilization {
  uint32_t gpu_percent;
  uint32_t memory_percent;
};
static_assert(sizeof(Utilization) == 8);

enum ValueType : uint32_t { kDouble = 0, kUnsigned, kUnsignedLong, kUnsignedLongLong, kSigned };

struct FieldValue {
  uint32_t field;
  uint32_t scope;
  int64_t timestamp_us;
  int64_t latency_us;
  uint32_t type;  ///< ValueType
  uint32_t code;  ///< of this field alone
  union {
    double as_double;
    uint32_t as_unsigned;
    uint64_t as_unsigned_long;
    int64_t as_signed;
  };
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, as_double) == 32);

struct EventData {
  Handle device;
  uint64_t type;
  uint64_t data;  ///< of an Xid event: its number
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, data) == 16);

struct GpmSupport {
  uint32_t version;  ///< 1
  uint32_t is_supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct GpmMetric {
  uint32_t id;
  uint32_t code;  ///< of this metric alone
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

/// The array has grown from 98 to 333 entries while the version stayed 1, and a driver may write to
/// all that it knows.
constexpr uint32_t kGpmMetricRoom = 512;

struct GpmMetrics {
  uint32_t version;  ///< 1
  uint32_t count;
  Sample earlier;
  Sample later;
  GpmMetric metrics[kGpmMetricRoom];
};
static_assert(offsetof(GpmMetrics, earlier) == 8 && offsetof(GpmMetrics, metrics) == 24);

/// The functions, by their names. X(member, symbol, arguments): one that is called must be there.
#define AON_NVML_NEEDED(X)                                                   \
  X(init, nvmlInit_v2, (void))                                               \
  X(shutdown, nvmlShutdown, (void))                                          \
  X(device_count, nvmlDeviceGetCount_v2, (uint32_t*))                        \
  X(device, nvmlDeviceGetHandleByIndex_v2, (uint32_t, ::aon::nvml::Handle*)) \
  X(uuid, nvmlDeviceGetUUID, (::aon::nvml::Handle, char*, uint32_t))         \
  X(name, nvmlDeviceGetName, (::aon::nvml::Handle, char*, uint32_t))         \
  X(pci_info, nvmlDeviceGetPciInfo_v3, (::aon::nvml::Handle, ::aon::nvml::PciInfo*))

/// What a version may lack: the member is null then.
#define AON_NVML_OPTIONAL(X)                                                                       \
  X(driver_version, nvmlSystemGetDriverVersion, (char*, uint32_t))                                 \
  X(nvml_version, nvmlSystemGetNVMLVersion, (char*, uint32_t))                                     \
  X(power, nvmlDeviceGetPowerUsage, (::aon::nvml::Handle, uint32_t*))                              \
  X(energy, nvmlDeviceGetTotalEnergyConsumption, (::aon::nvml::Handle, uint64_t*))                 \
  X(clock, nvmlDeviceGetClockInfo, (::aon::nvml::Handle, uint32_t, uint32_t*))                     \
  X(clock_reasons, nvmlDeviceGetCurrentClocksEventReasons, (::aon::nvml::Handle, uint64_t*))       \
  X(old_clock_reasons, nvmlDeviceGetCurrentClocksThrottleReasons,                                  \
    (::aon::nvml::Handle, uint64_t*))                                                              \
  X(temperature, nvmlDeviceGetTemperature, (::aon::nvml::Handle, uint32_t, uint32_t*))             \
  X(memory, nvmlDeviceGetMemoryInfo, (::aon::nvml::Handle, ::aon::nvml::MemoryInfo*))              \
  X(utilization, nvmlDeviceGetUtilizationRates, (::aon::nvml::Handle, ::aon::nvml::Utilization*))  \
  X(ecc_errors, nvmlDeviceGetTotalEccErrors, (::aon::nvml::Handle, uint32_t, uint32_t, uint64_t*)) \
  X(remapped_rows, nvmlDeviceGetRemappedRows,                                                      \
    (::aon::nvml::Handle, uint32_t*, uint32_t*, uint32_t*, uint32_t*))                             \
  X(pcie_throughput, nvmlDeviceGetPcieThroughput, (::aon::nvml::Handle, uint32_t, uint32_t*))      \
  X(pcie_replays, nvmlDeviceGetPcieReplayCounter, (::aon::nvml::Handle, uint32_t*))                \
  X(fields, nvmlDeviceGetFieldValues, (::aon::nvml::Handle, int32_t, ::aon::nvml::FieldValue*))    \
  X(event_set, nvmlEventSetCreate, (::aon::nvml::EventSet*))                                       \
  X(register_events, nvmlDeviceRegisterEvents,                                                     \
    (::aon::nvml::Handle, uint64_t, ::aon::nvml::EventSet))                                        \
  X(wait_event, nvmlEventSetWait_v2, (::aon::nvml::EventSet, ::aon::nvml::EventData*, uint32_t))   \
  X(free_event_set, nvmlEventSetFree, (::aon::nvml::EventSet))                                     \
  X(mig_mode, nvmlDeviceGetMigMode, (::aon::nvml::Handle, uint32_t*, uint32_t*))                   \
  X(mig_device_count, nvmlDeviceGetMaxMigDeviceCount, (::aon::nvml::Handle, uint32_t*))            \
  X(mig_device, nvmlDeviceGetMigDeviceHandleByIndex,                                               \
    (::aon::nvml::Handle, uint32_t, ::aon::nvml::Handle*))                                         \
  X(gpu_instance, nvmlDeviceGetGpuInstanceId, (::aon::nvml::Handle, uint32_t*))                    \
  X(gpm_support, nvmlGpmQueryDeviceSupport, (::aon::nvml::Handle, ::aon::nvml::GpmSupport*))       \
  X(gpm_alloc, nvmlGpmSampleAlloc, (::aon::nvml::Sample*))                                         \
  X(gpm_free, nvmlGpmSampleFree, (::aon::nvml::Sample))                                            \
  X(gpm_sample, nvmlGpmSampleGet, (::aon::nvml::Handle, ::aon::nvml::Sample))                      \
  X(gpm_mig_sample, nvmlGpmMigSampleGet, (::aon::nvml::Handle, uint32_t, ::aon::nvml::Sample))     \
  X(gpm_metrics, nvmlGpmMetricsGet, (::aon::nvml::GpmMetrics*))

/// All of them. Each returns a Code.
struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list
#define AON_NVML_MEMBER(member_, symbol_, arguments_) uint32_t(*member_) arguments_;
  AON_NVML_NEEDED(AON_NVML_MEMBER)
  AON_NVML_OPTIONAL(AON_NVML_MEMBER)
#undef AON_NVML_MEMBER
};

}  // namespace aon::nvml
