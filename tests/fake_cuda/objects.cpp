// What a program asks a driver for before it works, as far as the programs of tests/gpu do:
// contexts and memory that are nothing, kernels that are their own names, events, graphs.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "tests/fake_cuda/fake_cuda.h"

namespace aon::fake {
namespace {

constexpr uint32_t kNotCapturing = UINT32_MAX;
constexpr int kGlobal = 0;
constexpr int kIllegalState = 401, kCaptureInvalidated = 901, kCaptureUnmatched = 903;
thread_local uint32_t t_captured = kNotCapturing;  ///< kernels in the graph that is being made

thread_local int t_capture_mode = kGlobal;  ///< of calls: cuThreadExchangeStreamCaptureMode
thread_local int t_begun_mode = -1;         ///< of the capture of this thread
thread_local const void* t_captured_stream = nullptr;
thread_local bool t_is_broken = false;

std::atomic<int> g_uses{0};  ///< of the context
std::atomic<int> g_global_captures{0};
std::atomic<bool> g_is_broken{false};

std::mutex g_mutex;
std::map<const void*, uint32_t>* g_nodes;  ///< guarded by g_mutex: of graphs that were captured

/// Not null, and never followed.
void* handle() {
  static std::atomic<uintptr_t> last{100};
  return reinterpret_cast<void*>(++last);
}

}  // namespace

bool break_capture() {
  t_is_broken = t_captured != kNotCapturing;
  return t_is_broken;
}

bool capture_kernel() {
  if (t_captured == kNotCapturing) return false;
  ++t_captured;
  return true;
}

uint32_t node_count(const void* graph) {
  const std::lock_guard lock(g_mutex);
  if (g_nodes == nullptr) return 1;
  const auto found = g_nodes->find(graph);
  return found == g_nodes->end() ? 1 : found->second;
}

}  // namespace aon::fake

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
extern "C" {

using namespace aon::fake;

/// Compute capability 9.0; nothing else is asked for.
int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMajor = 75;
  *value = attribute == kMajor ? 9 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = handle();
  ++g_uses;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  const WorkKind kind = --g_uses == 0 ? WorkKind::kEndContext : WorkKind::kReleaseContext;
  tell_end(kind, "cuDevicePrimaryCtxRelease_v2", 544);
  return 0;
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* is_active) {
  *flags = 0;
  *is_active = g_uses != 0 ? 1 : 0;
  return 0;
}
int cuCtxSetCurrent(void*) { return 0; }
int cuModuleLoadData(void** module, const void*) {
  *module = handle();
  return 0;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = strdup(name);
  return 0;
}
int cuMemAlloc_v2(uint64_t* address, size_t) {
  *address = reinterpret_cast<uintptr_t>(handle());
  return 0;
}
int cuMemHostAlloc(void** address, size_t, unsigned) {
  *address = handle();
  return 0;
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = handle();
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new uint64_t(0);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  *static_cast<uint64_t*>(event) = stream_end_ns(stream);
  return 0;
}
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  const uint64_t elapsed_ns = *static_cast<uint64_t*>(end) - *static_cast<uint64_t*>(begin);
  *ms = static_cast<float>(elapsed_ns) / 1e6F;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, t_capture_mode);
  return 0;
}
void fake_cuda_note_unsafe_call() {
  if (t_begun_mode < 0 && t_capture_mode == kGlobal && g_global_captures != 0) g_is_broken = true;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  t_captured = 0;
  t_captured_stream = stream;
  t_begun_mode = mode;
  if (mode == kGlobal) ++g_global_captures;
  return tell_call("cuStreamBeginCapture_v2", 539);
}
int cuStreamEndCapture(void* stream, void** graph) {
  const auto tell = [](int result) { return tell_call("cuStreamEndCapture", 497, result); };
  if (t_captured == kNotCapturing) return tell(kIllegalState);
  if (stream != t_captured_stream) return tell(kCaptureUnmatched);
  const uint32_t nodes = std::exchange(t_captured, kNotCapturing);
  const bool is_global = std::exchange(t_begun_mode, -1) == kGlobal;
  const bool is_broken = std::exchange(t_is_broken, false);
  if ((is_global && --g_global_captures == 0 && g_is_broken.exchange(false)) || is_broken)
    return tell(kCaptureInvalidated);
  *graph = handle();
  {
    const std::lock_guard lock(g_mutex);
    if (g_nodes == nullptr) g_nodes = new std::map<const void*, uint32_t>;
    (*g_nodes)[*graph] = nodes;
  }
  return tell(0);
}
int cuGraphInstantiateWithFlags(void** ready, void* graph, unsigned long long) {
  *ready = graph;
  tell_graph(*ready);
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
