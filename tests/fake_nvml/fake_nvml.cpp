/// A libnvidia-ml.so.1 that is made up: GPUs whose counters grow with each call. Knobs, read at
/// each call:
///
/// | FAKE_NVML_GPUS=N              | so many GPUs; 1                                            |
/// | FAKE_NVML_MIG=N               | the first GPU is divided into N parts                      |
/// | FAKE_NVML_GPM=0               | no GPU has GPM                                             |
/// | FAKE_NVML_USE=ID:P,..         | GPM's metric ID is P percent instead of ID percent         |
/// | FAKE_NVML_CUDA_UUIDS=1        | the UUIDs of tests/fake_cuda                               |
/// | FAKE_NVML_HIDDEN=N            | the last N GPUs belong to other jobs                       |
/// | FAKE_NVML_ERROR=F:CODE[:N],.. | function F fails, from its Nth call on                     |
/// | FAKE_NVML_SLOW=F:MS,..        | function F takes so long                                   |
/// | FAKE_NVML_HANG=F:N            | function F never returns, from its Nth call on             |
/// | FAKE_NVML_LOST=GPU:N          | from the Nth reading of its power on the GPU is lost       |
/// | FAKE_NVML_XID=GPU:NUMBER:N    | an Xid event at the Nth look at the GPU's events           |
/// | FAKE_NVML_NO_EVENTS=GPU:N     | from the Nth look on its events are those of a lost GPU    |
///
/// FAKE_NVML_OLD at compile time: a version without GPM, remapped rows and today's names.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/nvml/interface.h"

using namespace aon::nvml;

namespace {

constexpr uint32_t kMaxGpus = 16;
constexpr uint32_t kMaxParts = 8;

struct FakeDevice {
  uint32_t gpu;
  int part;  ///< -1: the whole
  uint64_t readings = 0;
};

struct FakeEvents {
  uint32_t gpu = kMaxGpus;
  uint64_t looks = 0;
};

struct Fake {
  std::mutex mutex;
  std::map<std::string, uint64_t> calls;
  std::vector<FakeDevice> devices;
  bool is_xid_told = false;
};

Fake& fake() {
  static Fake* one = [] {
    auto* made = new Fake;
    for (uint32_t gpu = 0; gpu < kMaxGpus; ++gpu) {
      made->devices.push_back({gpu, -1});
      for (uint32_t part = 0; part < kMaxParts; ++part)
        made->devices.push_back({gpu, static_cast<int>(part)});
    }
    return made;
  }();
  return *one;
}

const char* knob(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

uint64_t number(const char* name, uint64_t otherwise) {
  return *knob(name) != '\0' ? strtoull(knob(name), nullptr, 10) : otherwise;
}

/// What follows "F:" in a list "F:REST,F:REST"; "" where F is not in it.
std::string entry(const char* name, const char* function) {
  const std::string list = std::string(",") + knob(name);
  const std::string key = std::string(",") + function + ":";
  const size_t at = list.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return list.substr(begin, list.find(',', begin) - begin);
}

/// Counts a call, is slow, hangs or fails as the knobs say.
uint32_t enter(const char* function) {
  uint64_t calls = 0;
  {
    const std::lock_guard lock(fake().mutex);
    calls = ++fake().calls[function];
  }
  const std::string hang = entry("FAKE_NVML_HANG", function);
  if (!hang.empty() && calls >= std::stoull(hang)) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (const std::string ms = entry("FAKE_NVML_SLOW", function); !ms.empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(std::stoul(ms)));
  const std::string error = entry("FAKE_NVML_ERROR", function);
  if (error.empty()) return kSuccess;
  const size_t colon = error.find(':');
  const uint64_t from = colon == std::string::npos ? 1 : std::stoull(error.substr(colon + 1));
  return calls >= from ? static_cast<uint32_t>(std::stoul(error)) : uint32_t{kSuccess};
}

FakeDevice& device(Handle handle) { return *static_cast<FakeDevice*>(handle); }

bool is_lost(const FakeDevice& one) {
  unsigned gpu = 0;
  unsigned long from = 0;
  return sscanf(knob("FAKE_NVML_LOST"), "%u:%lu", &gpu, &from) == 2 && gpu == one.gpu &&
         fake().devices[gpu * (kMaxParts + 1)].readings >= from;
}

/// As enter(), of a device that may be lost.
uint32_t enter(const char* function, Handle handle) {
  const uint32_t code = enter(function);
  if (code != kSuccess) return code;
  return is_lost(device(handle)) ? uint32_t{kGpuIsLost} : uint32_t{kSuccess};
}

uint32_t copy(const char* text, char* to, uint32_t size) {
  if (strlen(text) >= size) return kInvalidArgument;
  strcpy(to, text);
  return kSuccess;
}

uint64_t calls_of(const char* function) {
  const std::lock_guard lock(fake().mutex);
  return fake().calls[function];
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) uint32_t
#define ENTER(...)                                                     \
  do {                                                                 \
    const uint32_t code_ = enter(__func__ __VA_OPT__(, ) __VA_ARGS__); \
    if (code_ != kSuccess) return code_;                               \
  } while (false)

FAKE nvmlInit_v2() {
  ENTER();
  return kSuccess;
}
FAKE nvmlShutdown() {
  ENTER();
  return kSuccess;
}
FAKE nvmlSystemGetDriverVersion(char* text, uint32_t size) {
  ENTER();
  return copy("580.65.06", text, size);
}
FAKE nvmlSystemGetNVMLVersion(char* text, uint32_t size) {
  ENTER();
  return copy("13.580.65.06", text, size);
}
FAKE nvmlDeviceGetCount_v2(uint32_t* count) {
  ENTER();
  *count = static_cast<uint32_t>(number("FAKE_NVML_GPUS", 1));
  return kSuccess;
}
FAKE nvmlDeviceGetHandleByIndex_v2(uint32_t index, Handle* handle) {
  ENTER();
  const uint64_t count = number("FAKE_NVML_GPUS", 1);
  if (index >= count) return kInvalidArgument;
  if (index + number("FAKE_NVML_HIDDEN", 0) >= count) return kNoPermission;
  *handle = &fake().devices[index * (kMaxParts + 1)];
  return kSuccess;
}
FAKE nvmlDeviceGetUUID(Handle handle, char* text, uint32_t size) {
  ENTER(handle);
  const FakeDevice& one = device(handle);
  char uuid[64];
  if (number("FAKE_NVML_CUDA_UUIDS", 0) != 0) {  // 16 times the ordinal + 1
    const unsigned byte = one.gpu + 1;
    snprintf(uuid, sizeof uuid, "GPU-%08x-%04x-%04x-%04x-%04x%08x", byte * 0x01010101,
             byte * 0x0101, byte * 0x0101, byte * 0x0101, byte * 0x0101, byte * 0x01010101);
    return copy(uuid, text, size);
  }
  snprintf(uuid, sizeof uuid, "%s-0000000%x-1111-2222-3333-44444444000%x",
           one.part < 0 ? "GPU" : "MIG", one.gpu, one.part + 1);
  return copy(uuid, text, size);
}
FAKE nvmlDeviceGetName(Handle handle, char* text, uint32_t size) {
  ENTER(handle);
  return copy(device(handle).part < 0 ? "Fake H100" : "Fake H100 MIG 1g.10gb", text, size);
}
FAKE nvmlDeviceGetPciInfo_v3(Handle handle, PciInfo* pci) {
  ENTER(handle);
  *pci = PciInfo{};
  pci->bus = 0x17 + device(handle).gpu;
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return kSuccess;
}
FAKE nvmlDeviceGetPowerUsage(Handle handle, uint32_t* milliwatts) {
  ++device(handle).readings;
  ENTER(handle);
  *milliwatts = 100'000 + 10'000 * device(handle).gpu;
  return kSuccess;
}
FAKE nvmlDeviceGetTotalEnergyConsumption(Handle handle, uint64_t* millijoules) {
  ENTER(handle);
  *millijoules = 7'000'000 + 100'000 * calls_of(__func__);
  return kSuccess;
}
FAKE nvmlDeviceGetClockInfo(Handle handle, uint32_t type, uint32_t* mhz) {
  ENTER(handle);
  *mhz = type == kClockSm ? 1980 : 2619;
  return kSuccess;
}
FAKE nvmlDeviceGetCurrentClocksThrottleReasons(Handle handle, uint64_t* reasons) {
  ENTER(handle);
  *reasons = 4;
  return kSuccess;
}
FAKE nvmlDeviceGetTemperature(Handle handle, uint32_t, uint32_t* celsius) {
  ENTER(handle);
  *celsius = 40 + device(handle).gpu;
  return kSuccess;
}
FAKE nvmlDeviceGetMemoryInfo(Handle handle, MemoryInfo* memory) {
  ENTER(handle);
  *memory = {80ull << 30, 60ull << 30, 20ull << 30};
  return kSuccess;
}
FAKE nvmlDeviceGetUtilizationRates(Handle handle, Utilization* utilization) {
  ENTER(handle);
  *utilization = {75, 25};
  return kSuccess;
}
FAKE nvmlDeviceGetTotalEccErrors(Handle handle, uint32_t type, uint32_t, uint64_t* count) {
  ENTER(handle);
  *count = type == kEccCorrected ? 10 : 1;
  return kSuccess;
}
FAKE nvmlDeviceGetPcieThroughput(Handle handle, uint32_t counter, uint32_t* kb) {
  ENTER(handle);
  *kb = counter == kPcieSent ? 1000 : 2000;
  return kSuccess;
}
FAKE nvmlDeviceGetPcieReplayCounter(Handle handle, uint32_t* count) {
  ENTER(handle);
  *count = 3;
  return kSuccess;
}
FAKE nvmlDeviceGetFieldValues(Handle handle, int32_t count, FieldValue* values) {
  ENTER(handle);
  const uint64_t calls = calls_of(__func__);
  for (int32_t i = 0; i < count; ++i) {
    FieldValue& value = values[i];
    value.code = kSuccess;
    value.type = kUnsignedLongLong;
    switch (value.field) {
      case kFieldThrottledPower:
        value.as_unsigned_long = calls * 1'000'000'000;
        break;
      case kFieldMemoryTemperature:
        value.type = kUnsigned;
        value.as_unsigned_long = 0xffffffff00000000u | 55;  // the upper half is not its
        break;
      case kFieldNvlinkSent:
      case kFieldNvlinkReceived:
        value.as_unsigned_long = calls * 1000;
        value.code = value.scope == kAllLinks ? uint32_t{kSuccess} : uint32_t{kInvalidArgument};
        break;
      default:
        value.code = kNotSupported;
    }
  }
  return kSuccess;
}
FAKE nvmlEventSetCreate(EventSet* set) {
  ENTER();
  *set = new FakeEvents;
  return kSuccess;
}
FAKE nvmlDeviceRegisterEvents(Handle handle, uint64_t, EventSet set) {
  ENTER(handle);
  static_cast<FakeEvents*>(set)->gpu = static_cast<const FakeDevice*>(handle)->gpu;
  return kSuccess;
}
FAKE nvmlEventSetWait_v2(EventSet set, EventData* event, uint32_t) {
  ENTER();
  auto& events = *static_cast<FakeEvents*>(set);
  ++events.looks;
  unsigned gpu = 0;
  unsigned xid = 0;
  unsigned long nth = 0;
  if (sscanf(knob("FAKE_NVML_NO_EVENTS"), "%u:%lu", &gpu, &nth) == 2 && gpu == events.gpu &&
      events.looks >= nth)
    return kGpuIsLost;
  if (sscanf(knob("FAKE_NVML_XID"), "%u:%u:%lu", &gpu, &xid, &nth) != 3) return kTimeout;
  if (gpu != events.gpu || events.looks < nth || std::exchange(fake().is_xid_told, true))
    return kTimeout;
  *event = {&fake().devices[gpu * (kMaxParts + 1)], kEventXid, xid, 0, 0};
  return kSuccess;
}
FAKE nvmlEventSetFree(EventSet set) {
  ENTER();
  delete static_cast<FakeEvents*>(set);
  return kSuccess;
}

#ifndef FAKE_NVML_OLD
FAKE nvmlDeviceGetCurrentClocksEventReasons(Handle handle, uint64_t* reasons) {
  ENTER(handle);
  *reasons = 1;
  return kSuccess;
}
FAKE nvmlDeviceGetRemappedRows(Handle handle, uint32_t* corrected, uint32_t* uncorrected,
                               uint32_t* is_pending, uint32_t* has_failed) {
  ENTER(handle);
  *corrected = 2;
  *uncorrected = 1;
  *is_pending = 1;
  *has_failed = 0;
  return kSuccess;
}
FAKE nvmlDeviceGetMigMode(Handle handle, uint32_t* mode, uint32_t* pending) {
  ENTER(handle);
  *mode = *pending = device(handle).gpu == 0 && number("FAKE_NVML_MIG", 0) > 0 ? 1 : 0;
  return kSuccess;
}
FAKE nvmlDeviceGetMaxMigDeviceCount(Handle handle, uint32_t* count) {
  ENTER(handle);
  *count = 7;
  return kSuccess;
}
FAKE nvmlDeviceGetMigDeviceHandleByIndex(Handle handle, uint32_t index, Handle* part) {
  ENTER(handle);
  if (index >= number("FAKE_NVML_MIG", 0)) return kNotFound;
  *part = &fake().devices[device(handle).gpu * (kMaxParts + 1) + 1 + index];
  return kSuccess;
}
FAKE nvmlDeviceGetGpuInstanceId(Handle handle, uint32_t* id) {
  ENTER(handle);
  *id = static_cast<uint32_t>(device(handle).part) + 7;
  return kSuccess;
}
FAKE nvmlGpmQueryDeviceSupport(Handle handle, GpmSupport* support) {
  ENTER(handle);
  support->is_supported = number("FAKE_NVML_GPM", 1) != 0 ? 1 : 0;
  return support->version == 1 ? uint32_t{kSuccess} : uint32_t{kInvalidArgument};
}
FAKE nvmlGpmSampleAlloc(Sample* sample) {
  ENTER();
  *sample = calloc(1, sizeof(uint64_t));
  return kSuccess;
}
FAKE nvmlGpmSampleFree(Sample sample) {
  ENTER();
  free(sample);
  return kSuccess;
}
FAKE nvmlGpmSampleGet(Handle handle, Sample sample) {
  ENTER(handle);
  if (device(handle).part >= 0) return kInvalidArgument;
  *static_cast<uint64_t*>(sample) = calls_of(__func__);
  return kSuccess;
}
FAKE nvmlGpmMigSampleGet(Handle handle, uint32_t instance, Sample sample) {
  ENTER(handle);
  if (device(handle).part >= 0 || instance < 7) return kInvalidArgument;
  *static_cast<uint64_t*>(sample) = calls_of(__func__);
  return kSuccess;
}
/// Metric N is N percent unless told; there is no NVLink. The later sample must be the later one.
FAKE nvmlGpmMetricsGet(GpmMetrics* metrics) {
  ENTER();
  if (metrics->version != 1) return kInvalidArgument;
  if (*static_cast<uint64_t*>(metrics->earlier) >= *static_cast<uint64_t*>(metrics->later))
    return kInvalidArgument;
  for (uint32_t i = 0; i < metrics->count; ++i) {
    GpmMetric& metric = metrics->metrics[i];
    metric.code = metric.id >= 60 ? uint32_t{kNotSupported} : uint32_t{kSuccess};
    const std::string told = entry("FAKE_NVML_USE", std::to_string(metric.id).c_str());
    metric.value = told.empty() ? metric.id : std::stod(told);
  }
  return kSuccess;
}
#endif
