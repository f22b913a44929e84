#include "cupti/parser.h"

#include <span>

#include "cupti/fields.h"

namespace aon::cupti {
namespace {

/// CUpti_ActivityMemoryKind; its static kinds (6, 7) are where they lie.
DeviceMemory memory_of(uint32_t kind) {
  if (kind < kDeviceMemoryCount) return static_cast<DeviceMemory>(kind);
  if (kind == 6) return DeviceMemory::kDevice;
  return kind == 7 ? DeviceMemory::kManaged : DeviceMemory::kUnknown;
}

/// CUpti_ActivityMemcpyKind.
const char* copy_label(uint8_t kind) {
  static constexpr const char* kLabels[] = {
      "[CUDA memcpy]",      "[CUDA memcpy HtoD]", "[CUDA memcpy DtoH]", "[CUDA memcpy HtoA]",
      "[CUDA memcpy AtoH]", "[CUDA memcpy AtoA]", "[CUDA memcpy AtoD]", "[CUDA memcpy DtoA]",
      "[CUDA memcpy DtoD]", "[CUDA memcpy HtoH]", "[CUDA memcpy PtoP]"};
  return kind < sizeof kLabels / sizeof kLabels[0] ? kLabels[kind] : kLabels[0];
}

/// CUpti_ActivitySynchronizationType.
const char* synchronization_label(uint32_t type) {
  static constexpr const char* kLabels[] = {"[CUDA synchronization]", "[CUDA event synchronize]",
                                            "[CUDA stream wait event]", "[CUDA stream synchronize]",
                                            "[CUDA context synchronize]"};
  return type < sizeof kLabels / sizeof kLabels[0] ? kLabels[type] : kLabels[0];
}

/// CUpti_ActivityOverheadKind: the driver's compiler is 1, the others count in the upper half.
const char* overhead_label(uint32_t type) {
  static constexpr const char* kLabels[] = {
      "[CUPTI overhead]",           "[CUPTI buffer flush]",  "[CUPTI instrumentation]",
      "[CUPTI resource]",           "[CUDA module loading]", "[CUDA lazy function loading]",
      "[CUDA command buffer full]", "[CUPTI buffer request]"};
  if (type == 1) return "[CUDA driver compiler]";
  const uint32_t index = type >> 16;
  return index < sizeof kLabels / sizeof kLabels[0] ? kLabels[index] : kLabels[0];
}

/// Handing over buffers and making room for records; not what is done once per module or by the
/// driver, which fewer records would not make cheaper.
bool is_cost_of_records(uint32_t type) {
  constexpr uint32_t kFlush = 1, kResource = 3, kBufferRequest = 7;
  const uint32_t index = type >> 16;
  return index == kFlush || index == kResource || index == kBufferRequest;
}

void parse_copy(const uint8_t* record, bool is_between_devices, const Quirks& quirks, Work* work) {
  work->operation = DeviceOperation::kCopy;
  work->label = copy_label(record[memcpy1::kCopyKind]);
  work->from = memory_of(record[memcpy1::kFrom]);
  work->to = memory_of(record[memcpy1::kTo]);
  work->bytes = field<uint64_t>(record, memcpy1::kBytes);
  parse_times(record, memcpy1::kStart, memcpy1::kEnd, work);
  parse_place(record, memcpy1::kDevice, work);
  if (is_between_devices) {
    work->correlation = field<uint32_t>(record, memcpy2::kCorrelation);
    parse_graph(record, memcpy2::kGraphNode, memcpy2::kGraph, quirks, work);
  } else {
    work->correlation = field<uint32_t>(record, memcpy1::kCorrelation);
    parse_graph(record, memcpy1::kGraphNode, memcpy1::kGraph, quirks, work);
  }
}

void parse_set(const uint8_t* record, const Quirks& quirks, Work* work) {
  work->operation = DeviceOperation::kSet;
  work->label = "[CUDA memset]";
  work->to = memory_of(field<uint16_t>(record, set::kMemory));
  work->bytes = field<uint64_t>(record, set::kBytes);
  parse_times(record, set::kStart, set::kEnd, work);
  parse_place(record, set::kDevice, work);
  parse_graph(record, set::kGraphNode, set::kGraph, quirks, work);
  work->correlation = field<uint32_t>(record, set::kCorrelation);
}

void parse_graph_trace(const uint8_t* record, Work* work) {
  work->operation = DeviceOperation::kGraph;
  work->label = "[CUDA graph]";
  parse_times(record, graph::kStart, graph::kEnd, work);
  work->device = field<uint32_t>(record, graph::kDevice);
  work->context = field<uint32_t>(record, graph::kContext);
  work->stream = field<uint32_t>(record, graph::kStream);
  work->correlation = field<uint32_t>(record, graph::kCorrelation);
  work->graph = field<uint32_t>(record, graph::kGraph);
}

void parse_synchronization(const uint8_t* record, Work* work) {
  work->operation = DeviceOperation::kSynchronize;
  work->row = Row::kSynchronization;
  work->label = synchronization_label(field<uint32_t>(record, synchronization::kType));
  parse_times(record, synchronization::kStart, synchronization::kEnd, work);
  work->context = field<uint32_t>(record, synchronization::kContext);
  work->correlation = field<uint32_t>(record, synchronization::kCorrelation);
}

void parse_overhead(const uint8_t* record, const Quirks& quirks, Work* work) {
  work->operation = DeviceOperation::kOther;
  work->row = Row::kOverhead;
  const auto type = field<uint32_t>(record, overhead::kType);
  work->label = overhead_label(type);
  work->is_cost_of_records = is_cost_of_records(type);
  if (quirks.has_overhead_threads &&
      field<uint32_t>(record, overhead::kObject) == overhead::kThreadObject)
    work->stream = field<uint32_t>(record, overhead::kThread);
  parse_times(record, overhead::kStart, overhead::kEnd, work);
}

/// False: a kind that has no time.
bool parse_kind(const uint8_t* record, const Quirks& quirks, Work* work) {
  switch (field<Kind>(record, 0)) {
    case Kind::kConcurrentKernel:
      parse_kernel(record, quirks, work);
      return true;
    case Kind::kMemcpy:
      parse_copy(record, false, quirks, work);
      return true;
    case Kind::kMemcpy2:
      parse_copy(record, true, quirks, work);
      return true;
    case Kind::kMemset:
      parse_set(record, quirks, work);
      return true;
    case Kind::kGraphTrace:
      parse_graph_trace(record, work);
      return true;
    case Kind::kRuntime:
      parse_call(record, false, work);
      return true;
    case Kind::kDriver:
      parse_call(record, true, work);
      return true;
    case Kind::kSynchronization:
      parse_synchronization(record, work);
      return true;
    case Kind::kOverhead:
      parse_overhead(record, quirks, work);
      return true;
    case Kind::kExternalCorrelation:  // parse_external_id()
      break;
  }
  return false;
}

Does does_of(bool is_driver_call, uint32_t function) {
  const auto calls = is_driver_call ? std::span<const Call>(kDriverCalls) : kRuntimeCalls;
  for (const Call& call : calls) {
    if (call.id == function || call.per_thread_id == function) return call.does;
  }
  return Does::kOther;
}

/// As `*work = {}`, which compilers make of `rep stos`: that takes longer than the rest of parse().
void clear(Work* work) {
  using Word [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
  auto* words = reinterpret_cast<Word*>(work);
  static_assert(sizeof(Work) == 6 * sizeof(Word) && alignof(Work) == sizeof(Word));
  words[0] = words[1] = words[2] = words[3] = words[4] = words[5] = Word{};
}

}  // namespace

Does does_of(const Work& call) { return does_of(call.is_driver_call, call.function); }

bool is_of_graph(const Work& work) {
  if (work.row == Row::kCalls) return does_of(work) == Does::kLaunchGraph;
  return work.operation == DeviceOperation::kGraph || work.graph != 0;
}

bool is_end_of_capture(const uint8_t* call) {
  const auto result = field<int32_t>(call, api::kResult);
  if (result != kCaptureInvalidated && result != kCaptureUnjoined) return false;
  return does_of(kind_of(call) == Kind::kDriver, field<uint32_t>(call, api::kFunction)) ==
         Does::kEndCapture;
}

bool parse_external_id(const uint8_t* record, ExternalId* id) {
  const auto kind = field<uint32_t>(record, external::kKind);
  *id = {static_cast<ExternalKind>(kind), field<uint32_t>(record, external::kCorrelation),
         field<uint64_t>(record, external::kId)};
  return is_external_kind(kind) && id->correlation != 0;
}

Parsed parse(const uint8_t* record, const Quirks& quirks, Work* work) {
  clear(work);
  if (!parse_kind(record, quirks, work)) return Parsed::kIgnored;
  if (work->start_ns == 0 || work->end_ns == 0) return Parsed::kZeroTimes;
  return work->end_ns < work->start_ns ? Parsed::kDamaged : Parsed::kWork;
}

}  // namespace aon::cupti
