// A CUPTI over the fake driver: libcupti.so.13 for tests, with the layouts of CUDA 13.0, a buffer
// for each thread, a worker that hands buffers over, and knobs for what goes wrong:
//
//   FAKE_CUPTI_VERSION=N      what cuptiGetVersion says; below 27 a null buffer kills the process
//   FAKE_CUPTI_BUSY=NAME      another client holds the subscription
//   FAKE_CUPTI_ZERO=N         every Nth piece of work has no times
//   FAKE_CUPTI_DROP=N         every Nth is dropped, and counted
//   FAKE_CUPTI_REORDER=1      buffers are handed over last first
//   FAKE_CUPTI_HOLD=1         no buffer is handed over before a forced flush
//   FAKE_CUPTI_ERROR=NAME:N   the Nth call of this function returns 999
//   FAKE_CUPTI_OVERHEAD=N     every piece of work costs N ns, CUPTI says
//   FAKE_CUPTI_FATAL=N        a fatal error after N pieces of work
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugins/cupti/interface.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace aon::fake {
namespace {

using cupti::Callback;
using cupti::Code;
using cupti::CompleteBuffer;
using cupti::Kind;
using cupti::kSuccess;
using cupti::RequestBuffer;

constexpr Code kUnknown = 999;
constexpr Code kEndOfBuffer = 12;
constexpr Code kInvalidKind = 21;

uint64_t knob(const char* name) {
  const char* text = getenv((std::string("FAKE_CUPTI_") + name).c_str());
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

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

struct Buffer {
  uint8_t* bytes = nullptr;
  size_t capacity = 0;
  size_t used = 0;
};

struct ThreadBuffer {
  std::mutex mutex;
  Buffer buffer;
};

/// All of it lives for ever: the worker may run while the process exits.
struct State {
  std::mutex mutex;
  std::set<Kind> kinds;
  std::set<uint32_t> driver_calls;
  std::vector<ThreadBuffer*> threads;
  std::vector<Buffer> full;
  std::condition_variable has_full;
  bool has_worker = false;
  bool is_released = knob("HOLD") == 0;
  bool is_promised_zeros = false;
  uint32_t in_delivery = 0;
  std::condition_variable delivered;
  std::map<std::string, uint64_t> calls;
  std::atomic<uint64_t> work_count{0};
  std::atomic<size_t> dropped{0};
  std::atomic<Callback> callback{nullptr};
  std::atomic<bool> is_dead{false};
  RequestBuffer request = nullptr;
  CompleteBuffer complete = nullptr;
};
State& state() {
  static State* one = new State;
  return *one;
}

/// kSuccess, unless FAKE_CUPTI_ERROR says otherwise.
Code count_call(const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint64_t number = ++s.calls[name];
  const char* text = getenv("FAKE_CUPTI_ERROR");
  const size_t bytes = strlen(name);
  const bool is_meant = text != nullptr && strncmp(text, name, bytes) == 0 && text[bytes] == ':' &&
                        strtoull(text + bytes + 1, nullptr, 10) == number;
  return is_meant ? kUnknown : kSuccess;
}

/// A byte per flush into the file FAKE_CUPTI_FLUSHES.
void note_flush() {
  const char* path = getenv("FAKE_CUPTI_FLUSHES");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, "f", 1) != 1) abort();
  close(file);
}

void deliver(std::vector<Buffer> buffers) {
  if (knob("REORDER") != 0) std::reverse(buffers.begin(), buffers.end());
  for (const Buffer& b : buffers) {
    state().complete(nullptr, 0, b.bytes, b.capacity, b.used);
  }
}

void run_worker() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.has_full.wait(lock, [&] { return s.is_released && !s.full.empty(); });
    std::vector<Buffer> buffers;
    buffers.swap(s.full);
    ++s.in_delivery;
    lock.unlock();
    deliver(std::move(buffers));
    lock.lock();
    --s.in_delivery;
    s.delivered.notify_all();
  }
}

void hand_over(Buffer* buffer) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.full.push_back(*buffer);
  *buffer = {};
  if (!s.has_worker) std::thread(run_worker).detach();
  s.has_worker = true;
  s.has_full.notify_one();
}

ThreadBuffer& thread_buffer() {
  thread_local ThreadBuffer* mine = nullptr;
  if (mine == nullptr) {
    mine = new ThreadBuffer;
    const std::lock_guard lock(state().mutex);
    state().threads.push_back(mine);
  }
  return *mine;
}

void put(const std::vector<uint8_t>& record) {
  ThreadBuffer& mine = thread_buffer();
  const std::lock_guard lock(mine.mutex);
  Buffer& buffer = mine.buffer;
  if (buffer.bytes != nullptr && buffer.used + record.size() > buffer.capacity) hand_over(&buffer);
  if (buffer.bytes == nullptr) {
    size_t max_records = 0;
    state().request(&buffer.bytes, &buffer.capacity, &max_records);
    if (buffer.bytes == nullptr) {
      if (knob("VERSION") != 0 && knob("VERSION") < 27) abort();  // as CUDA before 12.9
      ++state().dropped;
      return;
    }
    for (size_t i = 0; i < 4096 && state().is_promised_zeros; ++i) {
      if (buffer.bytes[i] != 0) abort();
    }
  }
  memcpy(buffer.bytes + buffer.used, record.data(), record.size());
  buffer.used += record.size();
}

class RecordMaker {
 public:
  explicit RecordMaker(Kind kind) : bytes_(record_bytes(kind)) { set(0, kind); }
  template <class T>
  void set(size_t offset, const T& value) {
    memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

bool wants(Kind kind) {
  const std::lock_guard lock(state().mutex);
  return state().kinds.count(kind) != 0;
}

void set_place(RecordMaker* record, size_t device, const Work& work) {
  record->set(device, work.device);
  record->set(device + 4, work.context);
  record->set(device + 8, work.stream);
}

void put_kernel(const Work& work) {
  using namespace cupti::kernel;
  RecordMaker record(Kind::kConcurrentKernel);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kGrid, work.blocks);
  record.set(kBlock, work.threads);
  record.set(kDynamicShared, work.shared_bytes);
  record.set(kCorrelation, work.correlation);
  record.set(kName, work.name);
  put(record.bytes());
}

void put_copy(const Work& work) {
  using namespace cupti::memcpy1;
  RecordMaker record(Kind::kMemcpy);
  record.set(kCopyKind, work.copy_kind);
  record.set(kFrom, work.from);
  record.set(kTo, work.to);
  record.set(kBytes, work.bytes);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kCorrelation, work.correlation);
  put(record.bytes());
}

void put_set(const Work& work) {
  using namespace cupti::set;
  RecordMaker record(Kind::kMemset);
  record.set(kBytes, work.bytes);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  set_place(&record, kDevice, work);
  record.set(kCorrelation, work.correlation);
  record.set(kMemory, uint16_t{work.to});
  put(record.bytes());
}

void put_graph(const Work& work) {
  using namespace cupti::graph;
  RecordMaker record(Kind::kGraphTrace);
  record.set(kCorrelation, work.correlation);
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  record.set(kDevice, work.device);
  record.set(kGraph, uint32_t{7});
  record.set(kContext, work.context);
  record.set(kStream, work.stream);
  put(record.bytes());
}

void put_synchronization(const Work& work) {
  using namespace cupti::synchronization;
  RecordMaker record(Kind::kSynchronization);
  record.set(kType, uint32_t{4});
  record.set(kStart, work.start_ns);
  record.set(kEnd, work.end_ns);
  record.set(kCorrelation, work.correlation);
  record.set(kContext, work.context);
  put(record.bytes());
}

void put_call(const Work& work) {
  using namespace cupti::api;
  {
    const std::lock_guard lock(state().mutex);
    if (state().driver_calls.count(work.function_id) == 0) return;
  }
  RecordMaker record(Kind::kDriver);
  record.set(kFunction, work.function_id);
  record.set(kStart, work.call_start_ns);
  record.set(kEnd, work.call_end_ns);
  record.set(kThread, static_cast<uint32_t>(syscall(SYS_gettid)));
  record.set(kCorrelation, work.correlation);
  put(record.bytes());
}

void put_overhead(const Work& work, uint64_t cost_ns) {
  using namespace cupti::overhead;
  RecordMaker record(Kind::kOverhead);
  record.set(kType, uint32_t{1 << 16});
  record.set(kObject, kThreadObject);
  record.set(kThread, static_cast<uint32_t>(syscall(SYS_gettid)));
  record.set(kStart, work.call_start_ns);
  record.set(kEnd, work.call_start_ns + cost_ns);
  put(record.bytes());
}

struct KindOfWork {
  WorkKind work;
  Kind kind;
  void (*put)(const Work& work);
};
constexpr KindOfWork kKinds[] = {
    {WorkKind::kKernel, Kind::kConcurrentKernel, put_kernel},
    {WorkKind::kCopy, Kind::kMemcpy, put_copy},
    {WorkKind::kSet, Kind::kMemset, put_set},
    {WorkKind::kGraph, Kind::kGraphTrace, put_graph},
    {WorkKind::kSynchronize, Kind::kSynchronization, put_synchronization}};

bool is_nth(const char* name, uint64_t number) {
  const uint64_t n = knob(name);
  return n != 0 && number % n == 0;
}

void on_work(const Work& told) {
  State& s = state();
  if (s.request == nullptr || s.is_dead) return;
  const uint64_t number = ++s.work_count;
  if (number == knob("FATAL")) {
    s.is_dead = true;
    if (const Callback callback = s.callback.load()) {
      callback(nullptr, cupti::kStateDomain, cupti::kFatalError, nullptr);
    }
    return;
  }
  if (told.kind != WorkKind::kSynchronize) put_call(told);
  if (is_nth("DROP", number)) {
    ++s.dropped;
    return;
  }
  if (knob("OVERHEAD") != 0 && wants(Kind::kOverhead)) put_overhead(told, knob("OVERHEAD"));
  Work work = told;
  if (is_nth("ZERO", number)) work.start_ns = work.end_ns = 0;
  for (const KindOfWork& one : kKinds) {
    if (one.work == work.kind && wants(one.kind)) one.put(work);
  }
  if (told.kind == WorkKind::kSynchronize) put_call(told);  // over after what it waited for
}

void listen() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  const auto set = reinterpret_cast<void (*)(Listener)>(dlsym(driver, "fake_cuda_listen"));
  if (set != nullptr) set(on_work);
}

}  // namespace
}  // namespace aon::fake

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
extern "C" {

using namespace aon::fake;
using aon::cupti::Attribute;
using aon::cupti::Subscriber;
using aon::cupti::SubscriberParams;

Code cuptiGetVersion(uint32_t* version) {
  const uint64_t wanted = knob("VERSION");
  *version = wanted != 0 ? static_cast<uint32_t>(wanted) : 130001;
  return count_call("cuptiGetVersion");
}
Code cuptiGetTimestamp(uint64_t* ns) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  return count_call("cuptiGetTimestamp");
}
Code cuptiGetResultString(Code code, const char** text) {
  *text = code == kSuccess ? "CUPTI_SUCCESS" : "FAKE_ERROR";
  return kSuccess;
}
Code cuptiSubscribe_v2(Subscriber* subscriber, Callback callback, void*, SubscriberParams* params) {
  if (const char* owner = getenv("FAKE_CUPTI_BUSY")) {
    if (params != nullptr && params->old_name != nullptr) {
      strncpy(params->old_name, owner, params->old_name_bytes - 1);
    }
    return aon::cupti::kSubscribed;
  }
  if (const Code code = count_call("cuptiSubscribe"); code != kSuccess) return code;
  state().callback = callback;
  *subscriber = &state();
  state().request = nullptr;
  listen();
  return kSuccess;
}
Code cuptiSubscribe(Subscriber* subscriber, Callback callback, void* user) {
  return cuptiSubscribe_v2(subscriber, callback, user, nullptr);
}
Code cuptiUnsubscribe(Subscriber) {
  state().callback = nullptr;
  return count_call("cuptiUnsubscribe");
}
Code cuptiEnableCallback(uint32_t, Subscriber, int32_t, uint32_t) {
  return count_call("cuptiEnableCallback");
}
Code cuptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
  if (const Code code = count_call("cuptiActivityRegisterCallbacks"); code != kSuccess) return code;
  state().complete = complete;
  state().request = request;
  return kSuccess;
}
Code cuptiActivityEnable(Kind kind) {
  if (const Code code = count_call("cuptiActivityEnable"); code != kSuccess) return code;
  const std::lock_guard lock(state().mutex);
  state().kinds.insert(kind);
  return kSuccess;
}
Code cuptiActivityDisable(Kind kind) {
  if (knob("VERSION") == 130000) pause();  // its deadlock
  const std::lock_guard lock(state().mutex);
  state().kinds.erase(kind);
  return kSuccess;
}
Code cuptiActivityEnableDriverApi(uint32_t function, uint8_t enable) {
  if (const Code code = count_call("cuptiActivityEnableDriverApi"); code != kSuccess) return code;
  const std::lock_guard lock(state().mutex);
  if (enable != 0) {
    state().driver_calls.insert(function);
  } else {
    state().driver_calls.erase(function);
  }
  return kSuccess;
}
Code cuptiActivityEnableRuntimeApi(uint32_t, uint8_t) { return kSuccess; }
Code cuptiActivitySetAttribute(Attribute attribute, size_t*, void*) {
  state().is_promised_zeros = attribute == Attribute::kZeroedBuffers;
  return count_call("cuptiActivitySetAttribute");
}
Code cuptiGetCallbackName(int32_t domain, uint32_t id, const char** name) {
  static const std::map<uint32_t, const char*> kNames = {
      {307, "cuLaunchKernel"},  {277, "cuMemcpyHtoDAsync_v2"}, {279, "cuMemcpyDtoHAsync_v2"},
      {216, "cuMemsetD8Async"}, {514, "cuGraphLaunch"},        {17, "cuCtxSynchronize"}};
  const auto found = kNames.find(id);
  if (domain != aon::cupti::kDriverDomain || found == kNames.end()) return kUnknown;
  *name = found->second;
  return kSuccess;
}
Code cuptiActivityFlushAll(uint32_t flag) {
  State& s = state();
  if (const Code code = count_call("cuptiActivityFlushAll"); code != kSuccess) return code;
  note_flush();
  std::vector<ThreadBuffer*> threads;
  {
    const std::lock_guard lock(s.mutex);
    s.is_released = s.is_released || flag == aon::cupti::kFlushForced;
    if (!s.is_released) return kSuccess;
    s.has_full.notify_one();
    threads = s.threads;
  }
  for (ThreadBuffer* thread : threads) {
    const std::lock_guard lock(thread->mutex);
    if (thread->buffer.used != 0) hand_over(&thread->buffer);
  }
  std::unique_lock lock(s.mutex);
  s.delivered.wait(lock, [&] { return s.full.empty() && s.in_delivery == 0; });
  return kSuccess;
}
Code cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  *count = state().dropped.exchange(0);
  return kSuccess;
}
Code cuptiActivityGetNextRecord(uint8_t* buffer, size_t bytes, uint8_t** record) {
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
}
// NOLINTEND(readability-identifier-naming)
