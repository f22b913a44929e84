#include "nvml/queries.h"

namespace aon::nvml {
namespace {

constexpr double kPerMilli = 1e-3;
constexpr double kPerNano = 1e-9;
constexpr double kMega = 1e6;
constexpr double kPercent = 0.01;
constexpr double kKibi = 1024;
constexpr double kKilo = 1000;

constexpr SeriesText kPower{"nvml/power", "W",
                            "power of the board; from Ampere on a mean over 1 s"};
constexpr SeriesText kEnergy{"nvml/energy", "J", "energy of the board"};
constexpr SeriesText kSmClock{"nvml/clock-sm", "Hz", "clock of the multiprocessors"};
constexpr SeriesText kMemoryClock{"nvml/clock-memory", "Hz", "clock of the memory"};
constexpr SeriesText kReasons{
    "nvml/clock-reasons", "1",
    "why the clocks are not higher, a sum of: 1 idle, 2 set by a user, 4 power cap, 8 hardware "
    "slowdown, 16 sync boost, 32 thermal by software, 64 thermal by hardware, 128 power brake, "
    "256 display"};
constexpr SeriesText kThrottledPower{"nvml/throttled-power", "s",
                                     "time below the clocks for power"};
constexpr SeriesText kThrottledThermal{"nvml/throttled-thermal", "s",
                                       "time below the clocks for temperature"};
constexpr SeriesText kTemperature{"nvml/temperature", "Cel", "temperature of the GPU"};
constexpr SeriesText kMemoryTemperature{"nvml/temperature-memory", "Cel",
                                        "temperature of the memory"};
constexpr SeriesText kMemoryUsed{"nvml/memory-used", "By", "memory in use, the driver's included"};
constexpr SeriesText kMemoryFree{"nvml/memory-free", "By", "memory that is free"};
constexpr SeriesText kBusy{"nvml/utilisation", "1",
                           "share of the driver's last sampling period in which a kernel ran"};
constexpr SeriesText kMemoryBusy{
    "nvml/utilisation-memory", "1",
    "share of the driver's last sampling period in which memory was read or written"};
constexpr SeriesText kNvlinkSent{"nvml/nvlink-sent", "By", "data sent over all NVLinks"};
constexpr SeriesText kNvlinkReceived{"nvml/nvlink-received", "By",
                                     "data received over all NVLinks"};
constexpr SeriesText kPcieSentRate{"pcie/sent-rate", "By/s", "sent over PCIe, over 20 ms"};
constexpr SeriesText kPcieReceivedRate{"pcie/received-rate", "By/s",
                                       "received over PCIe, over 20 ms"};
constexpr SeriesText kEccCorrectedErrors{"health/ecc-corrected", "1",
                                         "memory errors that ECC corrected"};
constexpr SeriesText kEccUncorrectedErrors{"health/ecc-uncorrected", "1",
                                           "memory errors that ECC could not correct"};
constexpr SeriesText kRowsCorrectable{"health/remapped-rows-correctable", "1",
                                      "rows of memory replaced after correctable errors, ever"};
constexpr SeriesText kRowsUncorrectable{"health/remapped-rows-uncorrectable", "1",
                                        "rows of memory replaced after uncorrectable errors, ever"};
constexpr SeriesText kRowsPending{"health/remapped-rows-pending", "1",
                                  "1: a row waits for a reset to be replaced"};
constexpr SeriesText kRowsFailed{"health/remapped-rows-failed", "1",
                                 "1: a row could not be replaced, the GPU is due for exchange"};
constexpr SeriesText kPcieReplays{"health/pcie-replays", "1", "packets that PCIe sent again"};

uint32_t read_power(const Functions& call, Handle gpu, Values* values) {
  if (call.power == nullptr) return kFunctionNotFound;
  uint32_t milliwatts = 0;
  const uint32_t code = call.power(gpu, &milliwatts);
  if (code == kSuccess) values->value(kPower, milliwatts * kPerMilli);
  return code;
}

uint32_t read_energy(const Functions& call, Handle gpu, Values* values) {
  if (call.energy == nullptr) return kFunctionNotFound;
  uint64_t millijoules = 0;
  const uint32_t code = call.energy(gpu, &millijoules);
  if (code == kSuccess) values->count(kEnergy, millijoules, kPerMilli);
  return code;
}

uint32_t read_clocks(const Functions& call, Handle gpu, Values* values) {
  if (call.clock == nullptr) return kFunctionNotFound;
  uint32_t sm_mhz = 0;
  uint32_t memory_mhz = 0;
  uint32_t code = call.clock(gpu, kClockSm, &sm_mhz);
  if (code == kSuccess) code = call.clock(gpu, kClockMemory, &memory_mhz);
  if (code != kSuccess) return code;
  values->value(kSmClock, sm_mhz * kMega);
  values->value(kMemoryClock, memory_mhz * kMega);
  return code;
}

uint32_t read_reasons(const Functions& call, Handle gpu, Values* values) {
  const auto ask = call.clock_reasons != nullptr ? call.clock_reasons : call.old_clock_reasons;
  if (ask == nullptr) return kFunctionNotFound;
  uint64_t reasons = 0;
  const uint32_t code = ask(gpu, &reasons);
  if (code == kSuccess) values->value(kReasons, static_cast<double>(reasons));
  return code;
}

uint32_t read_temperature(const Functions& call, Handle gpu, Values* values) {
  if (call.temperature == nullptr) return kFunctionNotFound;
  uint32_t celsius = 0;
  const uint32_t code = call.temperature(gpu, kTemperatureGpu, &celsius);
  if (code == kSuccess) values->value(kTemperature, celsius);
  return code;
}

uint32_t read_memory(const Functions& call, Handle gpu, Values* values) {
  if (call.memory == nullptr) return kFunctionNotFound;
  MemoryInfo memory = {};
  const uint32_t code = call.memory(gpu, &memory);
  if (code != kSuccess) return code;
  values->value(kMemoryUsed, static_cast<double>(memory.used_bytes));
  values->value(kMemoryFree, static_cast<double>(memory.free_bytes));
  return code;
}

uint32_t read_utilization(const Functions& call, Handle gpu, Values* values) {
  if (call.utilization == nullptr) return kFunctionNotFound;
  Utilization busy = {};
  const uint32_t code = call.utilization(gpu, &busy);
  if (code != kSuccess) return code;
  values->value(kBusy, busy.gpu_percent * kPercent);
  values->value(kMemoryBusy, busy.memory_percent * kPercent);
  return code;
}

uint64_t integer_of(const FieldValue& field) {
  switch (field.type) {
    case kDouble:
      return field.as_double > 0 ? static_cast<uint64_t>(field.as_double) : 0;
    case kUnsigned:
      return field.as_unsigned;
    default:
      return field.as_unsigned_long;
  }
}

/// Reads fields of one kind; one that there is not is left out, and none at all is its code.
uint32_t read_fields(const Functions& call, Handle gpu, std::span<FieldValue> fields) {
  if (call.fields == nullptr) return kFunctionNotFound;
  const uint32_t code = call.fields(gpu, static_cast<int32_t>(fields.size()), fields.data());
  if (code != kSuccess) return code;
  for (const FieldValue& field : fields) {
    if (field.code == kSuccess) return kSuccess;
  }
  return fields.front().code;
}

FieldValue field_of(uint32_t id, uint32_t scope = 0) {
  FieldValue field = {};
  field.field = id;
  field.scope = scope;
  field.code = kNotSupported;
  return field;
}

uint32_t read_throttling(const Functions& call, Handle gpu, Values* values) {
  FieldValue fields[] = {field_of(kFieldThrottledPower), field_of(kFieldThrottledThermal)};
  const uint32_t code = read_fields(call, gpu, fields);
  if (code != kSuccess) return code;
  if (fields[0].code == kSuccess) values->count(kThrottledPower, integer_of(fields[0]), kPerNano);
  if (fields[1].code == kSuccess) values->count(kThrottledThermal, integer_of(fields[1]), kPerNano);
  return code;
}

uint32_t read_memory_temperature(const Functions& call, Handle gpu, Values* values) {
  FieldValue fields[] = {field_of(kFieldMemoryTemperature)};
  const uint32_t code = read_fields(call, gpu, fields);
  if (code == kSuccess) values->value(kMemoryTemperature, static_cast<double>(integer_of(*fields)));
  return code;
}

uint32_t read_nvlink(const Functions& call, Handle gpu, Values* values) {
  FieldValue fields[] = {field_of(kFieldNvlinkSent, kAllLinks),
                         field_of(kFieldNvlinkReceived, kAllLinks)};
  const uint32_t code = read_fields(call, gpu, fields);
  if (code != kSuccess) return code;
  if (fields[0].code == kSuccess) values->count(kNvlinkSent, integer_of(fields[0]), kKibi);
  if (fields[1].code == kSuccess) values->count(kNvlinkReceived, integer_of(fields[1]), kKibi);
  return code;
}

uint32_t read_pcie(const Functions& call, Handle gpu, Values* values) {
  if (call.pcie_throughput == nullptr) return kFunctionNotFound;
  uint32_t sent_kb = 0;
  uint32_t received_kb = 0;
  uint32_t code = call.pcie_throughput(gpu, kPcieSent, &sent_kb);
  if (code == kSuccess) code = call.pcie_throughput(gpu, kPcieReceived, &received_kb);
  if (code != kSuccess) return code;
  values->value(kPcieSentRate, sent_kb * kKilo);
  values->value(kPcieReceivedRate, received_kb * kKilo);
  return code;
}

uint32_t read_ecc(const Functions& call, Handle gpu, Values* values) {
  if (call.ecc_errors == nullptr) return kFunctionNotFound;
  uint64_t corrected = 0;
  uint64_t uncorrected = 0;
  uint32_t code = call.ecc_errors(gpu, kEccCorrected, kEccVolatile, &corrected);
  if (code == kSuccess) code = call.ecc_errors(gpu, kEccUncorrected, kEccVolatile, &uncorrected);
  if (code != kSuccess) return code;
  values->count(kEccCorrectedErrors, corrected);
  values->count(kEccUncorrectedErrors, uncorrected);
  return code;
}

uint32_t read_rows(const Functions& call, Handle gpu, Values* values) {
  if (call.remapped_rows == nullptr) return kFunctionNotFound;
  uint32_t correctable = 0;
  uint32_t uncorrectable = 0;
  uint32_t is_pending = 0;
  uint32_t has_failed = 0;
  const uint32_t code =
      call.remapped_rows(gpu, &correctable, &uncorrectable, &is_pending, &has_failed);
  if (code != kSuccess) return code;
  values->value(kRowsCorrectable, correctable);
  values->value(kRowsUncorrectable, uncorrectable);
  values->value(kRowsPending, is_pending);
  values->value(kRowsFailed, has_failed);
  return code;
}

uint32_t read_replays(const Functions& call, Handle gpu, Values* values) {
  if (call.pcie_replays == nullptr) return kFunctionNotFound;
  uint32_t replays = 0;
  const uint32_t code = call.pcie_replays(gpu, &replays);
  if (code == kSuccess) values->count(kPcieReplays, replays);
  return code;
}

constexpr Query kQueries[] = {
    {"power", Asks::kGpus, Pace::kOften, read_power},
    {"energy", Asks::kGpus, Pace::kOften, read_energy},
    {"clocks", Asks::kGpus, Pace::kOften, read_clocks},
    {"reasons of clocks", Asks::kGpus, Pace::kOften, read_reasons},
    {"throttling", Asks::kGpus, Pace::kOften, read_throttling},
    {"temperature", Asks::kGpus, Pace::kOften, read_temperature},
    {"temperature of memory", Asks::kGpus, Pace::kOften, read_memory_temperature},
    {"memory", Asks::kEverything, Pace::kOften, read_memory},
    {"utilisation", Asks::kGpus, Pace::kOften, read_utilization},
    {"NVLink", Asks::kGpus, Pace::kOften, read_nvlink},
    {"PCIe", Asks::kGpusWithoutGpm, Pace::kPcie, read_pcie},
    {"ECC errors", Asks::kGpus, Pace::kSeldom, read_ecc},
    {"remapped rows", Asks::kGpus, Pace::kSeldom, read_rows},
    {"PCIe replays", Asks::kGpus, Pace::kSeldom, read_replays},
};

}  // namespace

std::span<const Query> queries() { return kQueries; }

}  // namespace aon::nvml
