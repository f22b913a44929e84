#include "tests/fake_cuda/cupti_records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>

namespace aon::fake {
namespace {

using cupti::Code;
using cupti::Kind;
using cupti::kSuccess;

constexpr Code kEndOfBuffer = 12;
constexpr uint32_t kNotApplicable = UINT32_MAX;  ///< stream and event of waiting for a context
constexpr Code kInvalidKind = 21;

/// Lengths of the records of CUDA 13.0.
size_t record_bytes(Kind kind) {
  switch (kind) {
    case Kind::kConcurrentKernel:
      return 216;
    case Kind::kMemcpy:
    case Kind::kMemcpy2:
      return 96;
    case Kind::kMemset:
      return 88;
    case Kind::kDriver:
    case Kind::kRuntime:
      return 40;
    case Kind::kExternalCorrelation:
      return 24;
    case Kind::kGraphTrace:
    case Kind::kSynchronization:
    case Kind::kOverhead:
      return 56;
  }
  return 0;
}

class RecordMaker {
 public:
  explicit RecordMaker(Kind kind) : bytes_(record_bytes(kind)) { set(0, kind); }
  template <class T>
  void set(size_t offset, const T& value) {
    memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  const Record& bytes() const { return bytes_; }

 private:
  Record bytes_;
};

void set_place(RecordMaker* record, size_t device, const Work& work) {
  record->set(device, work.device);
  record->set(device + 4, work.context);
  record->set(device + 8, work.stream);
}

}  // namespace

void note(const char* variable) {
  const char* path = getenv(variable);
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, "f", 1) != 1) abort();
  close(file);
}

const char* function_name(uint32_t id) {
  static const std::map<uint32_t, const char*> kNames = {{307, "cuLaunchKernel"},
                                                         {277, "cuMemcpyHtoDAsync_v2"},
                                                         {279, "cuMemcpyDtoHAsync_v2"},
                                                         {281, "cuMemcpyDtoDAsync_v2"},
                                                         {216, "cuMemsetD8Async"},
                                                         {514, "cuGraphLaunch"},
                                                         {17, "cuCtxSynchronize"},
                                                         {539, "cuStreamBeginCapture_v2"},
                                                         {497, "cuStreamEndCapture"},
                                                         {11, "cuCtxDestroy"},
                                                         {322, "cuCtxDestroy_v2"},
                                                         {387, "cuDevicePrimaryCtxRelease"},
                                                         {389, "cuDevicePrimaryCtxReset"},
                                                         {544, "cuDevicePrimaryCtxRelease_v2"},
                                                         {545, "cuDevicePrimaryCtxReset_v2"}};
  const auto found = kNames.find(id);
  return found == kNames.end() ? nullptr : found->second;
}

Record kernel_record(const Work& work) {
  using namespace cupti::kernel;
  constexpr size_t kCompleted = 32;
  RecordMaker record(Kind::kConcurrentKernel);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  record.set(kCompleted, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kGrid, work.blocks);
  record.set(kBlock, work.threads);
  record.set(kDynamicShared, work.shared_bytes);
  record.set(kRegisters, work.registers);
  record.set(kCorrelation, work.correlation);
  record.set(kName, work.name);
  return record.bytes();
}

Record copy_record(const Work& work) {
  using namespace cupti::memcpy1;
  constexpr size_t kFlags = 7;
  constexpr uint8_t kIsAsynchronous = 1;
  RecordMaker record(Kind::kMemcpy);
  record.set(kFlags, kIsAsynchronous);
  record.set(kCopyKind, work.copy_kind);
  record.set(kFrom, work.from);
  record.set(kTo, work.to);
  record.set(kBytes, work.bytes);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kCorrelation, work.correlation);
  return record.bytes();
}

Record set_record(const Work& work) {
  using namespace cupti::set;
  RecordMaker record(Kind::kMemset);
  record.set(kBytes, work.bytes);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kCorrelation, work.correlation);
  record.set(kMemory, uint16_t{work.to});
  return record.bytes();
}

Record graph_record(const Work& work) {
  using namespace cupti::graph;
  RecordMaker record(Kind::kGraphTrace);
  record.set(kCorrelation, work.correlation);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  record.set(kDevice, work.device);
  record.set(kGraph, uint32_t{7});
  record.set(kContext, work.context);
  record.set(kStream, work.stream);
  return record.bytes();
}

Record synchronization_record(const Work& work) {
  using namespace cupti::synchronization;
  RecordMaker record(Kind::kSynchronization);
  record.set(kType, uint32_t{4});
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  record.set(kCorrelation, work.correlation);
  record.set(kContext, work.context);
  for (const size_t at : {kStream, kStream + 4, kStream + 8}) record.set(at, kNotApplicable);
  return record.bytes();
}

Record call_record(const Work& work, int32_t result) {
  using namespace cupti::api;
  constexpr size_t kProcess = 24;
  RecordMaker record(Kind::kDriver);
  record.set(kProcess, static_cast<uint32_t>(getpid()));
  record.set(kResult, result);
  record.set(kFunction, work.function_id);
  record.set(kStart, work.call_start_ns);
  record.set(kEnd, work.call_end_ns);
  record.set(kThread, static_cast<uint32_t>(syscall(SYS_gettid)));
  record.set(kCorrelation, work.correlation);
  return record.bytes();
}

Record external_record(uint32_t kind, uint64_t id, uint32_t correlation) {
  using namespace cupti::external;
  RecordMaker record(Kind::kExternalCorrelation);
  record.set(kKind, kind);
  record.set(kId, id);
  record.set(kCorrelation, correlation);
  return record.bytes();
}

Record overhead_record(Overhead kind, uint64_t start_ns, uint64_t end_ns, uint32_t correlation) {
  using namespace cupti::overhead;
  constexpr size_t kProcess = 12, kCorrelation = 40;
  RecordMaker record(Kind::kOverhead);
  record.set(kType, kind);
  record.set(kObject, kThreadObject);
  record.set(kProcess, static_cast<uint32_t>(getpid()));
  record.set(kThread, static_cast<uint32_t>(syscall(SYS_gettid)));
  record.set(kStart, start_ns);
  record.set(kEnd, end_ns);
  record.set(kCorrelation, correlation);
  return record.bytes();
}

Record strange_record() {
  constexpr size_t kStrangeBytes = 72;
  constexpr uint32_t kStrangeKind = 201;
  Record record(kStrangeBytes);
  memcpy(record.data(), &kStrangeKind, sizeof kStrangeKind);
  for (uint32_t i = 2; i < kStrangeBytes / sizeof i; ++i)
    memcpy(record.data() + i * sizeof i, &i, sizeof i);
  return record;
}

void forget_end(uint8_t* record, uint64_t now_ns) {
  static_assert(cupti::kernel::kStart == cupti::memcpy1::kStart &&
                cupti::kernel::kStart == cupti::set::kStart);
  Kind kind;
  memcpy(&kind, record, sizeof kind);
  const bool is_graph = kind == Kind::kGraphTrace;
  const bool is_work =
      is_graph || kind == Kind::kConcurrentKernel || kind == Kind::kMemcpy || kind == Kind::kMemset;
  if (!is_work) return;
  const size_t start = is_graph ? cupti::graph::kStart : cupti::kernel::kStart;
  for (const size_t at : {start, start + sizeof(uint64_t)}) {
    uint64_t time_ns;
    memcpy(&time_ns, record + at, sizeof time_ns);
    if (time_ns > now_ns) memset(record + at, 0, sizeof time_ns);
  }
}

Code next_record(uint8_t* buffer, size_t bytes, uint8_t** record) {
  uint8_t* at = *record;
  Kind kind{};
  if (at != nullptr) {
    memcpy(&kind, at, sizeof kind);
    at += record_bytes(kind);
  } else {
    at = buffer;
  }
  if (at >= buffer + bytes) return kEndOfBuffer;
  memcpy(&kind, at, sizeof kind);
  if (record_bytes(kind) == 0) return kInvalidKind;
  if (at + record_bytes(kind) > buffer + bytes) return kEndOfBuffer;
  *record = at;
  return kSuccess;
}

}  // namespace aon::fake
