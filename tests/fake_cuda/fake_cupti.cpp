// A CUPTI over the fake driver: libcupti.so.13 for tests, with the layouts of CUDA 13.0, a buffer
// for each thread, a worker that hands buffers over, and knobs for what goes wrong:
//
//   FAKE_CUPTI_VERSION=N      what cuptiGetVersion says; below 27 a null buffer kills the process
//   FAKE_CUPTI_BUSY=NAME      another client holds the subscription
//   FAKE_CUPTI_ZERO=N         every Nth piece of work has no times
//   FAKE_CUPTI_ABSURD=N       every Nth ends in a time that is years ahead
//   FAKE_CUPTI_DROP=N         every Nth is dropped, and counted
//   FAKE_CUPTI_BLIND=1        a GPU that it does not know: of work there is no record, and no error
//   FAKE_CUPTI_REORDER=1      buffers are handed over last first
//   FAKE_CUPTI_INLINE=N       buffers have N bytes, and who has filled one hands it over
//   FAKE_CUPTI_HOLD=1         no buffer is handed over before a forced flush
//   FAKE_CUPTI_STUCK=MS       its worker hands over nothing from so long after the first record on
//   FAKE_CUPTI_STUCK_MS=N     ... for N ms only
//   FAKE_CUPTI_WORKER_ASKS=1  its worker asks for a buffer for what it tells of itself
//   FAKE_CUPTI_FLUSH_HANG=N   the Nth flush never returns
//   FAKE_CUPTI_NAMELESS=N     every Nth kernel has no name
//   FAKE_CUPTI_FAILED=N       every Nth call that starts work fails: there is none
//   FAKE_CUPTI_UNASKED=1      calls of the driver are told that were not switched on, too
//   FAKE_CUPTI_IDS_LATE=1     records of external ids come behind that of their call
//   FAKE_CUPTI_IDS_ALONE=N    the records of every Nth call with external ids are these alone
//   FAKE_CUPTI_STRANGE=N      before every Nth piece of work is a record of an unknown kind
//   FAKE_CUPTI_ERROR=NAME:N   the Nth call of this function returns 999; "N+": from it on
//   FAKE_CUPTI_OVERHEAD=N     every piece of work costs N ns, CUPTI says
//   FAKE_CUPTI_FLUSH_MS=N     who flushes waits so long
//   FAKE_CUPTI_FATAL=N        a fatal error after N pieces of work
//   FAKE_CUPTI_OTHER=NAME     a client of the subscribers' interface (_v2) was first, and has
//                             graphs node by node; it is in the way of the older interface's
//   FAKE_CUPTI_DRIVER=N       below 610 a subscriber of that interface can do nothing
//
// Functions of the one interface fail for who has subscribed by the other, as NVIDIA's do.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugins/cupti/interface.h"
#include "tests/fake_cuda/buffers.h"
#include "tests/fake_cuda/cupti_records.h"
#include "tests/fake_cuda/external_ids.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace aon::fake {
namespace {

using cupti::Callback;
using cupti::Code;
using cupti::CompleteBuffer;
using cupti::Kind;
using cupti::kNotCompatible;
using cupti::kNotSupported;
using cupti::kSuccess;
using cupti::RequestBuffer;

constexpr Code kUnknown = 999;
constexpr Code kInvalidParameter = 1;

/// All of it lives for ever: the worker may run while the process exits.
struct State {
  std::mutex mutex;
  std::set<Kind> kinds;
  std::set<const void*> graphs;  ///< made while they were recorded as one
  std::set<uint32_t> driver_calls;
  std::set<std::pair<int32_t, uint32_t>> callbacks;
  std::map<std::string, uint64_t> calls;
  std::atomic<uint64_t> work_count{0};
  std::atomic<uint64_t> calls_with_ids{0};
  std::atomic<Callback> callback{nullptr};
  std::atomic<bool> is_dead{false};
  std::atomic<uint32_t> api{0};  ///< of the subscriber: 1, 2; 0: there is none
  uint64_t subscriber = 0;       ///< a new one each time
  bool has_graphs_as_one = false;
};
State& state() {
  static State* one = new State;
  return *one;
}

/// "3" is the third one, "3+" all from it on.
bool is_number_meant(const char* text, uint64_t number) {
  char* rest = nullptr;
  const uint64_t meant = strtoull(text, &rest, 10);
  return *rest == '+' ? number >= meant : number == meant;
}

/// kSuccess, unless FAKE_CUPTI_ERROR says otherwise.
Code count_call(const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint64_t number = ++s.calls[name];
  const char* text = getenv("FAKE_CUPTI_ERROR");
  const size_t bytes = strlen(name);
  const bool is_meant = text != nullptr && strncmp(text, name, bytes) == 0 && text[bytes] == ':' &&
                        is_number_meant(text + bytes + 1, number);
  return is_meant ? kUnknown : kSuccess;
}

bool wants(Kind kind) {
  const std::lock_guard lock(state().mutex);
  return state().kinds.count(kind) != 0;
}

/// Whether graphs are recorded as one, and not node by node.
bool has_graphs_as_one() {
  return state().api == 2 ? state().has_graphs_as_one : wants(Kind::kGraphTrace);
}

/// Each node of a graph is one kernel that takes as long as the graph.
Record graph_or_node_record(const Work& work) {
  if (has_graphs_as_one()) return graph_record(work);
  Work node = work;
  node.name = "graph_node";
  return kernel_record(node);
}

void put_of(const Work& work, const Record& record, uint64_t over_ns) {
  put(record, over_ns, work.correlation, wants(Kind::kOverhead));
}

/// False: there are none.
bool put_external_ids(const Work& work) {
  const std::vector<Record> records = external_records(work.correlation);
  if (records.empty() || !wants(Kind::kExternalCorrelation)) return false;
  for (const Record& record : records) put_of(work, record, 0);
  return true;
}

bool is_nth(const char* name, uint64_t number) {
  const uint64_t n = knob(name);
  return n != 0 && number % n == 0;
}

void put_call(const Work& work, int32_t result) {
  {
    const std::lock_guard lock(state().mutex);
    if (state().driver_calls.count(work.function_id) == 0) return;
  }
  const bool is_late = knob("IDS_LATE") != 0;
  const bool has_ids = !is_late && put_external_ids(work);
  if (has_ids && is_nth("IDS_ALONE", ++state().calls_with_ids)) return;
  put_of(work, call_record(work, result), work.call_end_ns);
  if (is_late) put_external_ids(work);
}

struct KindOfWork {
  WorkKind work;
  Kind kind;
  Record (*make)(const Work& work);
};
constexpr KindOfWork kKinds[] = {
    {WorkKind::kKernel, Kind::kConcurrentKernel, kernel_record},
    {WorkKind::kCopy, Kind::kMemcpy, copy_record},
    {WorkKind::kSet, Kind::kMemset, set_record},
    {WorkKind::kGraph, Kind::kGraphTrace, graph_or_node_record},
    {WorkKind::kSynchronize, Kind::kSynchronization, synchronization_record}};

/// As CUpti_CallbackData begins.
struct CallData {
  int32_t site;
  const char* function;
  const void* parameters;
};

void tell_call(const Work& told) {
  const int32_t device = 0;
  for (const int32_t site : {0, 1}) {
    const CallData data = {site, told.function, &device};
    if (const Callback callback = state().callback.load())
      callback(nullptr, cupti::kDriverDomain, told.function_id, &data);
  }
}

/// What is not handed over when a context ends is lost with it.
void end_context(const Work& told) {
  const bool is_last = told.kind == WorkKind::kEndContext;
  State& s = state();
  if (s.callbacks.count({cupti::kDriverDomain, told.function_id}) != 0) tell_call(told);
  if (is_last) lose_records();
}

/// What CUPTI does once, for the first work.
void put_preparation(const Work& first) {
  if (!wants(Kind::kOverhead)) return;
  constexpr uint64_t kCostNs = 1000;
  for (const Overhead kind : {Overhead::kInstrumentation, Overhead::kResource})
    put_of(first, overhead_record(kind, first.call_start_ns - kCostNs, first.call_start_ns, 2), 0);
}

void put_work(const Work& told, uint64_t number) {
  if (knob("OVERHEAD") != 0 && wants(Kind::kOverhead)) {
    const uint64_t end_ns = told.call_start_ns + knob("OVERHEAD");
    put_of(told, overhead_record(Overhead::kResource, told.call_start_ns, end_ns, told.correlation),
           0);
  }
  Work work = told;
  if (is_nth("STRANGE", number)) put_of(told, strange_record(), 0);
  if (is_nth("NAMELESS", number)) work.name = nullptr;
  if (is_nth("ZERO", number)) work.start_ns = work.end_ns = 0;
  if (is_nth("ABSURD", number)) work.end_ns += 400ull * 24 * 3600 * 1'000'000'000;
  for (const KindOfWork& one : kKinds) {
    if (one.work != work.kind || knob("BLIND") != 0) continue;
    const bool is_node = one.kind == Kind::kGraphTrace && !has_graphs_as_one();
    if (!wants(is_node ? Kind::kConcurrentKernel : one.kind)) continue;
    for (uint32_t i = 0; i < (is_node ? work.nodes : 1); ++i)
      put_of(work, one.make(work), told.end_ns);
  }
}

/// As CUPTI of CUDA 13.0 does with the driver 580 (seen on an H100): the launch of a graph that was
/// made while graphs were not recorded as one is its end, where they are now; so is one where who
/// has subscribed had left before.
void launch_graph(const void* graph) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const bool is_as_one = s.kinds.count(Kind::kGraphTrace) != 0;
  const bool is_fatal = is_as_one ? s.graphs.count(graph) == 0
                                  : s.subscriber > 1 && s.kinds.count(Kind::kConcurrentKernel) != 0;
  if (graph == nullptr || !is_fatal) return;
  fprintf(stderr, "fake cupti: a graph is launched that it crashes on\n");
  abort();
}

void make_graph(const void* graph) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.kinds.count(Kind::kGraphTrace) != 0) s.graphs.insert(graph);
}

/// The record of a call stands behind that of its work, which has its place from the launch on.
void on_work(const Work& told) {
  State& s = state();
  if (told.kind == WorkKind::kEndContext || told.kind == WorkKind::kReleaseContext)
    return end_context(told);
  if (knob("UNASKED") != 0) tell_call(told);
  if (told.kind == WorkKind::kMakeGraph) return make_graph(told.graph);
  if (told.kind == WorkKind::kGraph) launch_graph(told.graph);
  if (!has_buffer_user() || s.is_dead) return;
  if (told.kind == WorkKind::kCall) return put_call(told, told.result);
  const uint64_t number = ++s.work_count;
  if (number == knob("FATAL")) {
    s.is_dead = true;
    if (const Callback callback = s.callback.load()) {
      callback(nullptr, cupti::kStateDomain, cupti::kFatalError, nullptr);
    }
    return;
  }
  if (number == 1) put_preparation(told);
  const bool has_failed = is_nth("FAILED", number);
  if (is_nth("DROP", number)) {
    drop();
  } else if (!has_failed) {
    put_work(told, number);
  }
  put_call(told, has_failed ? 1 : 0);
}

void note_unsafe_call() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  const auto note = reinterpret_cast<void (*)()>(dlsym(driver, "fake_cuda_note_unsafe_call"));
  if (note != nullptr) note();
}

void listen() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  const auto set = reinterpret_cast<void (*)(Listener)>(dlsym(driver, "fake_cuda_listen"));
  if (set != nullptr) set(on_work);
}

/// Functions of the older interface, while who has subscribed is of the other.
Code check_v1() { return state().api == 2 ? kNotCompatible : kSuccess; }
Code check_v2(const void* subscriber) {
  const State& s = state();
  if (s.api != 2) return kNotCompatible;
  if (reinterpret_cast<uint64_t>(subscriber) != s.subscriber) return kInvalidParameter;
  return knob("DRIVER") != 0 && knob("DRIVER") < 610 ? kNotSupported : kSuccess;
}

Code enable(Kind kind) {
  note_unsafe_call();
  if (const Code code = count_call("cuptiActivityEnable"); code != kSuccess) return code;
  const std::lock_guard lock(state().mutex);
  state().kinds.insert(kind);
  return kSuccess;
}
void disable(Kind kind) {
  note_unsafe_call();
  const std::lock_guard lock(state().mutex);
  state().kinds.erase(kind);
}

Code set_driver_call(uint32_t function, uint8_t enable) {
  if (const Code code = count_call("cuptiActivityEnableDriverApi"); code != kSuccess) return code;
  const std::lock_guard lock(state().mutex);
  if (enable != 0) {
    state().driver_calls.insert(function);
  } else {
    state().driver_calls.erase(function);
  }
  return kSuccess;
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
  if (const Code code = check_v1(); code != kSuccess) return code;
  *ns = host_ns();
  note("FAKE_CUPTI_TIMES");
  return count_call("cuptiGetTimestamp");
}
Code cuptiGetTimestamp_v2(Subscriber subscriber, uint64_t* ns) {
  if (const Code code = check_v2(subscriber); code != kSuccess) return code;
  *ns = host_ns();
  return count_call("cuptiGetTimestamp");
}
Code cuptiGetResultString(Code code, const char** text) {
  *text = code == kSuccess ? "CUPTI_SUCCESS" : "FAKE_ERROR";
  return kSuccess;
}
Code cuptiSubscribe_v2(Subscriber* subscriber, Callback callback, void*, SubscriberParams* params) {
  const bool allows_others =
      params != nullptr && params->struct_bytes >= sizeof *params && params->allows_others == 1;
  const char* busy = getenv("FAKE_CUPTI_BUSY");
  const char* other = getenv("FAKE_CUPTI_OTHER");
  const char* owner = busy != nullptr ? busy : other;
  if (owner != nullptr && params != nullptr && params->old_name != nullptr)
    strncpy(params->old_name, owner, params->old_name_bytes - 1);
  if (busy != nullptr || (other != nullptr && !allows_others)) return aon::cupti::kSubscribed;
  if (const Code code = count_call("cuptiSubscribe"); code != kSuccess) return code;
  State& s = state();
  s.callback = callback;
  s.api = allows_others ? 2 : 1;
  *subscriber = reinterpret_cast<Subscriber>(++s.subscriber);
  set_buffer_user({});
  listen();
  return kSuccess;
}
Code cuptiSubscribe(Subscriber* subscriber, Callback callback, void* user) {
  return cuptiSubscribe_v2(subscriber, callback, user, nullptr);
}
Code cuptiUnsubscribe(Subscriber subscriber) {
  if (reinterpret_cast<uint64_t>(subscriber) != state().subscriber) return kInvalidParameter;
  state().callback = nullptr;
  state().callbacks.clear();
  state().api = 0;
  return count_call("cuptiUnsubscribe");
}
Code cuptiEnableCallback(uint32_t, Subscriber, int32_t domain, uint32_t id) {
  state().callbacks.insert({domain, id});
  return count_call("cuptiEnableCallback");
}
Code cuptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
  if (const Code code = check_v1(); code != kSuccess) return code;
  if (const Code code = count_call("cuptiActivityRegisterCallbacks"); code != kSuccess) return code;
  set_buffer_user({.request = request, .complete = complete});
  return kSuccess;
}
Code cuptiActivityRegisterCallbacks_v2(Subscriber subscriber, aon::cupti::RequestBufferV2 request,
                                       aon::cupti::CompleteBufferV2 complete) {
  if (const Code code = check_v2(subscriber); code != kSuccess) return code;
  if (const Code code = count_call("cuptiActivityRegisterCallbacks"); code != kSuccess) return code;
  set_buffer_user({.request_v2 = request, .complete_v2 = complete});
  return kSuccess;
}
Code cuptiActivityEnable(Kind kind) {
  const Code code = check_v1();
  return code != kSuccess ? code : enable(kind);
}
Code cuptiActivityEnable_v2(Subscriber subscriber, Kind kind, void* config) {
  const Code code = check_v2(subscriber);
  if (code == kSuccess && config != nullptr) abort();  // fields to be chosen: we have all
  return code != kSuccess ? code : enable(kind);
}
Code cuptiActivityDisable(Kind kind) {
  if (const Code code = check_v1(); code != kSuccess) return code;
  if (knob("VERSION") != 0 && knob("VERSION") < 130001) pause();  // its deadlock
  disable(kind);
  return kSuccess;
}
Code cuptiActivityDisable_v2(Subscriber subscriber, Kind kind, void*) {
  if (const Code code = check_v2(subscriber); code != kSuccess) return code;
  disable(kind);
  return kSuccess;
}
Code cuptiActivityEnableDriverApi(uint32_t function, uint8_t enable) {
  const Code code = check_v1();
  return code != kSuccess ? code : set_driver_call(function, enable);
}
Code cuptiActivityEnableDriverApi_v2(Subscriber subscriber, uint32_t function, uint8_t enable) {
  const Code code = check_v2(subscriber);
  return code != kSuccess ? code : set_driver_call(function, enable);
}
Code cuptiActivityEnableRuntimeApi(uint32_t, uint8_t) { return check_v1(); }
Code cuptiActivityEnableRuntimeApi_v2(Subscriber subscriber, uint32_t, uint8_t) {
  return check_v2(subscriber);
}
Code cuptiActivitySetAttribute(Attribute attribute, size_t* bytes, void* value) {
  if (const Code code = check_v1(); code != kSuccess) return code;
  const bool is_size = attribute == Attribute::kDeviceBuffers;
  if (*bytes != (is_size ? sizeof(size_t) : sizeof(uint8_t))) return kInvalidParameter;
  if (attribute == Attribute::kZeroedBuffers) promise_zeros(*static_cast<uint8_t*>(value) != 0);
  return count_call("cuptiActivitySetAttribute");
}
Code cuptiActivitySetAttribute_v2(Subscriber subscriber, Attribute attribute, size_t* bytes,
                                  void* value) {
  if (const Code code = check_v2(subscriber); code != kSuccess) return code;
  const bool is_word = attribute == Attribute::kThreadIdType;
  const bool is_size = attribute == Attribute::kDeviceBuffers;
  if (*bytes != (is_size ? sizeof(size_t) : is_word ? sizeof(int32_t) : sizeof(uint8_t)))
    return kInvalidParameter;
  if (attribute == Attribute::kZeroedBuffers) promise_zeros(true);
  if (attribute == Attribute::kGraphsAsOne) {
    const std::lock_guard lock(state().mutex);
    if (!state().kinds.empty() || getenv("FAKE_CUPTI_OTHER") != nullptr) return kInvalidParameter;
    state().has_graphs_as_one = *static_cast<uint8_t*>(value) != 0;
  }
  return count_call("cuptiActivitySetAttribute");
}
Code cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  const Code code = check_v1();
  return code != kSuccess ? code : push_external_id(kind, id);
}
Code cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* id) {
  const Code code = check_v1();
  return code != kSuccess ? code : pop_external_id(kind, id);
}
Code cuptiGetCallbackName(int32_t domain, uint32_t id, const char** name) {
  const char* found = domain == aon::cupti::kDriverDomain ? function_name(id) : nullptr;
  if (found == nullptr) return kUnknown;
  *name = found;
  return kSuccess;
}
Code cuptiActivityFlushAll(uint32_t flag) {
  if (const Code code = count_call("cuptiActivityFlushAll"); code != kSuccess) return code;
  note("FAKE_CUPTI_FLUSHES");
  if (state().calls["cuptiActivityFlushAll"] == knob("FLUSH_HANG"))
    for (;;) pause();
  note_unsafe_call();
  const uint64_t start_ns = host_ns();
  if (knob("FLUSH_MS") != 0) usleep(static_cast<useconds_t>(1000 * knob("FLUSH_MS")));
  flush(flag == aon::cupti::kFlushForced);
  // Of who flushes, and so in a buffer of its own, which the next flush hands over.
  if (knob("HOLD") == 0 && has_buffer_user() && wants(Kind::kOverhead))
    put(overhead_record(Overhead::kFlush, start_ns, host_ns(), 0), 0, 0, true);
  return kSuccess;
}
Code cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) {
  if (const Code code = check_v1(); code != kSuccess) return code;
  *count = take_dropped();
  return kSuccess;
}
Code cuptiActivityGetNumDroppedRecords_v2(Subscriber subscriber, void*, uint32_t, size_t* count) {
  if (const Code code = check_v2(subscriber); code != kSuccess) return code;
  *count = take_dropped();
  return kSuccess;
}
Code cuptiActivityGetNextRecord(uint8_t* buffer, size_t bytes, uint8_t** record) {
  const Code code = check_v1();
  return code != kSuccess ? code : next_record(buffer, bytes, record);
}
Code cuptiActivityGetNextRecord_v2(Subscriber subscriber, uint8_t* buffer, size_t bytes,
                                   uint8_t** record) {
  const Code code = check_v2(subscriber);
  return code != kSuccess ? code : next_record(buffer, bytes, record);
}
}
// NOLINTEND(readability-identifier-naming)
