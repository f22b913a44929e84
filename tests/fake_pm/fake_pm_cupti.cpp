/// PM sampling and the profiler's host side, made up: metric I has the value I in each sample, and
/// samples come at the interval that was asked for. Knobs:
///
/// | FAKE_PM_CHIP=NAME              | GH100                                                  |
/// | FAKE_PM_VERSION=N              | what cuptiGetVersion says; 130001                      |
/// | FAKE_PM_LACKS=TEXT             | metrics with TEXT in their name do not exist           |
/// | FAKE_PM_PASS=N                 | so many metrics fit into one pass; 100                 |
/// | FAKE_PM_ERROR=F:CODE:N[:M],... | function F fails in its Nth call (to its Mth)          |
/// | FAKE_PM_CRASH=N                | the Nth decoding is a segmentation fault               |
/// | FAKE_PM_OVERFLOW=N             | the Nth decoding tells of a full buffer                |
/// | FAKE_PM_MEMORY=MIB             | cuptiProfilerInitialize takes so much memory           |
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "plugins/gpu_counters/interface.h"

using namespace aon::gpu_counters;

namespace {

constexpr uint64_t kDataMagic = 0x61746164;

struct FakeHost {
  std::vector<std::string> names;
  bool is_frozen = false;
};
struct FakeSampling {
  uint64_t interval_ns = 0;
  uint64_t last_ns = 0;
  uint64_t end_ns = UINT64_MAX;  ///< when it was stopped
};
/// What the fake keeps in a counter data image: the times of its samples.
struct FakeData {
  uint64_t magic;
  uint64_t count;
  uint64_t end_ns[1024];
  uint64_t interval_ns;
};

const char* knob(const char* name) {
  const char* text = getenv(name);
  return text != nullptr ? text : "";
}

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t count_call(const char* function) {
  static std::map<std::string, uint64_t> calls;
  return ++calls[function];
}

int enter(const char* function, size_t size, size_t expected) {
  const uint64_t call = count_call(function);
  if (size != expected) {
    fprintf(stderr, "fake CUPTI: %s: a structure of %zu bytes\n", function, size);
    return kInvalidParameter;
  }
  const std::string list = std::string(",") + knob("FAKE_PM_ERROR");
  const std::string key = std::string(",") + function + ":";
  const size_t at = list.find(key);
  if (at == std::string::npos) return kSuccess;
  int code = 0;
  unsigned long first = 1;
  unsigned long last = 0;
  const int read = sscanf(list.c_str() + at + key.size(), "%d:%lu:%lu", &code, &first, &last);
  if (read < 3) last = first;
  return call >= first && call <= last ? code : int{kSuccess};
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int
#define ENTER(p_)                                                                          \
  do {                                                                                     \
    const int code_ =                                                                      \
        enter(__func__, (p_)->struct_bytes, kSizeOf<std::remove_pointer_t<decltype(p_)>>); \
    if (code_ != kSuccess) return code_;                                                   \
  } while (false)

FAKE cuptiGetVersion(uint32_t* version) {
  const char* text = knob("FAKE_PM_VERSION");
  *version = *text != '\0' ? static_cast<uint32_t>(strtoul(text, nullptr, 10)) : 130001;
  return kSuccess;
}
FAKE cuptiProfilerHostGetSupportedChips(SupportedChips* p) {
  static const char* const kChips[] = {"GH100"};
  ENTER(p);
  p->count = 1;
  p->names = kChips;
  return kSuccess;
}
FAKE cuptiProfilerHostInitialize(HostInitialize* p) {
  ENTER(p);
  if (p->type != kPmSampling) return kNotSupported;
  p->host = new FakeHost;
  return kSuccess;
}
FAKE cuptiProfilerHostDeinitialize(HostDeinitialize* p) {
  ENTER(p);
  delete static_cast<FakeHost*>(p->host);
  return kSuccess;
}
FAKE cuptiProfilerHostConfigAddMetrics(AddMetrics* p) {
  ENTER(p);
  auto* host = static_cast<FakeHost*>(p->host);
  if (host->is_frozen) return kUnknown;
  for (size_t i = 0; i < p->count; ++i) {
    if (*knob("FAKE_PM_LACKS") != '\0' && strstr(p->names[i], knob("FAKE_PM_LACKS")) != nullptr)
      return kInvalidParameter;
  }
  host->names.insert(host->names.end(), p->names, p->names + p->count);
  return kSuccess;
}
FAKE cuptiProfilerHostGetConfigImageSize(ConfigImageSize* p) {
  ENTER(p);
  p->bytes = sizeof(uint64_t);
  return kSuccess;
}
FAKE cuptiProfilerHostGetConfigImage(ConfigImage* p) {
  ENTER(p);
  auto* host = static_cast<FakeHost*>(p->host);
  host->is_frozen = true;
  const uint64_t count = host->names.size();
  memcpy(p->image, &count, sizeof count);
  return kSuccess;
}
FAKE cuptiProfilerHostGetNumOfPasses(PassCount* p) {
  ENTER(p);
  uint64_t count = 0;
  memcpy(&count, p->image, sizeof count);
  const uint64_t room =
      *knob("FAKE_PM_PASS") != '\0' ? strtoull(knob("FAKE_PM_PASS"), nullptr, 10) : 100;
  p->passes = (count + room - 1) / room;
  return kSuccess;
}
FAKE cuptiProfilerHostEvaluateToGpuValues(Evaluate* p) {
  ENTER(p);
  for (size_t i = 0; i < p->count; ++i) p->values[i] = static_cast<double>(i);
  return kSuccess;
}
FAKE cuptiProfilerInitialize(Initialize* p) {
  ENTER(p);
  const size_t bytes = strtoull(knob("FAKE_PM_MEMORY"), nullptr, 10) << 20;
  static volatile char* memory = nullptr;
  if (bytes != 0) memory = static_cast<char*>(malloc(bytes));
  for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
  return kSuccess;
}
FAKE cuptiDeviceGetChipName(ChipName* p) {
  ENTER(p);
  p->name = *knob("FAKE_PM_CHIP") != '\0' ? knob("FAKE_PM_CHIP") : "GH100";
  return kSuccess;
}
FAKE cuptiPmSamplingGetCounterAvailability(Availability* p) {
  ENTER(p);
  if (p->image == nullptr) p->bytes = 16;
  return kSuccess;
}
FAKE cuptiPmSamplingEnable(Enable* p) {
  ENTER(p);
  p->sampling = new FakeSampling;
  return kSuccess;
}
FAKE cuptiPmSamplingDisable(OfSampling* p) {
  ENTER(p);
  delete static_cast<FakeSampling*>(p->sampling);
  return kSuccess;
}
FAKE cuptiPmSamplingSetConfig(SetConfig* p) {
  ENTER(p);
  if (p->trigger != kTimeInterval && strcmp(knob("FAKE_PM_CHIP"), "GA100") != 0)
    return kInvalidParameter;
  static_cast<FakeSampling*>(p->sampling)->interval_ns = p->interval;
  return kSuccess;
}
FAKE cuptiPmSamplingGetCounterDataSize(DataSize* p) {
  ENTER(p);
  p->bytes = sizeof(FakeData);
  return kSuccess;
}
FAKE cuptiPmSamplingCounterDataImageInitialize(DataInitialize* p) {
  ENTER(p);
  const FakeData empty = {kDataMagic, 0, {}, 0};
  memcpy(p->data, &empty, sizeof empty);
  return kSuccess;
}
FAKE cuptiPmSamplingStart(OfSampling* p) {
  ENTER(p);
  static_cast<FakeSampling*>(p->sampling)->last_ns = now_ns();
  return kSuccess;
}
FAKE cuptiPmSamplingStop(OfSampling* p) {
  ENTER(p);
  static_cast<FakeSampling*>(p->sampling)->end_ns = now_ns();
  return kSuccess;
}
FAKE cuptiPmSamplingDecodeData(Decode* p) {
  ENTER(p);
  const uint64_t call = count_call("decode");
  if (call == strtoull(knob("FAKE_PM_CRASH"), nullptr, 10)) raise(SIGSEGV);
  auto* sampling = static_cast<FakeSampling*>(p->sampling);
  FakeData data;
  memcpy(&data, p->data, sizeof data);
  if (data.magic != kDataMagic || data.count != 0) return kUnknown;  // it was not reset
  data.interval_ns = sampling->interval_ns;
  const uint64_t end_ns = std::min(now_ns(), sampling->end_ns);
  while (data.count < 1024 && sampling->last_ns + sampling->interval_ns <= end_ns) {
    sampling->last_ns += sampling->interval_ns;
    data.end_ns[data.count++] = sampling->last_ns;
  }
  memcpy(p->data, &data, sizeof data);
  p->stop_reason = data.count == 1024 ? kDataFull : kEndOfRecords;
  p->overflow = call == strtoull(knob("FAKE_PM_OVERFLOW"), nullptr, 10) ? 1 : 0;
  return kSuccess;
}
FAKE cuptiPmSamplingGetCounterDataInfo(DataInfo* p) {
  ENTER(p);
  FakeData data;
  memcpy(&data, p->data, sizeof data);
  p->total = 1024;
  p->populated = p->completed = data.count;
  return kSuccess;
}
FAKE cuptiPmSamplingCounterDataGetSampleInfo(SampleInfo* p) {
  ENTER(p);
  FakeData data;
  memcpy(&data, p->data, sizeof data);
  if (p->index >= data.count) return kInvalidParameter;
  p->end_ns = data.end_ns[p->index];
  p->start_ns = p->end_ns - data.interval_ns;
  return kSuccess;
}
