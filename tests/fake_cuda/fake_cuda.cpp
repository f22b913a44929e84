// A driver without a device: libcuda.so.1 for tests. cuInit loads the library of
// CUDA_INJECTION64_PATH as NVIDIA's does; work takes a time that is made up, one piece after the
// other in each stream.
#include "tests/fake_cuda/fake_cuda.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace aon::fake {
namespace {

constexpr uint64_t kLaunchNs = 2000;  ///< from the call to the start on the device
constexpr uint32_t kDevices = 2;

std::atomic<Listener> g_listener{nullptr};
std::atomic<uint32_t> g_correlation{0};
std::atomic<uint64_t> g_duration_ns{10'000};
thread_local uint32_t t_device = 0;

std::mutex g_mutex;
std::map<std::pair<uint32_t, uint32_t>, uint64_t>* g_stream_ends;  ///< guarded by g_mutex

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void load_injection() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "fake cuda: %s\n", dlerror());
    return;
  }
  const auto entry = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (entry == nullptr || entry() != 1) fprintf(stderr, "fake cuda: not injected\n");
}

Work begin(WorkKind kind, const char* function, uint32_t function_id) {
  Work work{};
  work.kind = kind;
  work.function = function;
  work.function_id = function_id;
  work.call_start_ns = now_ns();
  work.correlation = ++g_correlation;
  work.device = t_device;
  work.context = t_device + 1;
  return work;
}

/// Puts the work behind what its stream has, and tells it.
int finish(Work* work, uint64_t duration_ns) {
  work->call_end_ns = now_ns();
  const Listener listener = g_listener.load();
  {
    const std::lock_guard lock(g_mutex);
    if (g_stream_ends == nullptr) {
      g_stream_ends = new std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
    }
    uint64_t& end = (*g_stream_ends)[{work->device, work->stream}];
    work->start_ns = std::max(end, work->call_end_ns + kLaunchNs);
    work->end_ns = end = work->start_ns + duration_ns;
  }
  if (listener != nullptr) listener(*work);
  return 0;
}

uint32_t stream_number(void* stream) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream));
}

int copy(const char* function, uint32_t function_id, uint8_t kind, size_t bytes, void* stream) {
  constexpr uint8_t kPinned = 2, kDevice = 3, kToDevice = 1, kFromDevice = 2;
  Work work = begin(WorkKind::kCopy, function, function_id);
  work.copy_kind = kind;
  work.from = kind == kToDevice ? kPinned : kDevice;
  work.to = kind == kFromDevice ? kPinned : kDevice;
  work.bytes = bytes;
  work.stream = stream_number(stream);
  return finish(&work, bytes / 10 + 1000);
}

/// When all that the device has to do is done.
uint64_t device_end_ns(uint32_t device) {
  const std::lock_guard lock(g_mutex);
  uint64_t end_ns = 0;
  if (g_stream_ends == nullptr) return end_ns;
  for (const auto& [stream, stream_end_ns] : *g_stream_ends) {
    if (stream.first == device) end_ns = std::max(end_ns, stream_end_ns);
  }
  return end_ns;
}

int synchronize(const char* function, uint32_t function_id) {
  constexpr int kCaptureUnsupported = 900;
  if (break_capture()) return tell_call(function, function_id, kCaptureUnsupported);
  Work work = begin(WorkKind::kSynchronize, function, function_id);
  for (const uint64_t end_ns = device_end_ns(work.device); now_ns() < end_ns;) {
    const timespec pause = {0, static_cast<long>(std::min<uint64_t>(end_ns - now_ns(), 1'000'000))};
    nanosleep(&pause, nullptr);
  }
  work.call_end_ns = now_ns();
  work.start_ns = work.call_start_ns;
  work.end_ns = work.call_end_ns;
  if (const Listener listener = g_listener.load()) listener(work);
  return 0;
}

void read_duration() {
  const char* text = getenv("FAKE_CUDA_DURATION_US");
  if (text != nullptr) g_duration_ns = 1000 * strtoull(text, nullptr, 10);
}

}  // namespace

void tell_end(WorkKind kind, const char* function, uint32_t function_id) {
  const Work work = begin(kind, function, function_id);
  if (const Listener listener = g_listener.load()) listener(work);
}

int tell_call(const char* function, uint32_t function_id, int result) {
  Work work = begin(WorkKind::kCall, function, function_id);
  work.call_end_ns = now_ns();
  work.result = result;
  if (const Listener listener = g_listener.load()) listener(work);
  return result;
}

void tell_graph(const void* graph) {
  Work work = begin(WorkKind::kMakeGraph, "cuGraphInstantiateWithFlags", 643);
  work.graph = graph;
  if (const Listener listener = g_listener.load()) listener(work);
}

uint64_t stream_end_ns(void* stream) {
  const uint64_t now = now_ns();
  const std::lock_guard lock(g_mutex);
  if (g_stream_ends == nullptr) return now;
  const auto found = g_stream_ends->find({t_device, stream_number(stream)});
  return found == g_stream_ends->end() ? now : std::max(now, found->second);
}

}  // namespace aon::fake

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names
extern "C" {

using namespace aon::fake;

void fake_cuda_listen(Listener listener) { g_listener = listener; }
int fake_cuda_set_device(uint32_t device) {
  if (device >= kDevices) return 101;
  t_device = device;
  return 0;
}
void fake_cuda_set_duration(uint64_t ns) { g_duration_ns = ns; }

int cuInit(unsigned) {
  static std::once_flag once;
  std::call_once(once, [] {
    read_duration();
    load_injection();
  });
  return 0;
}
/// FAKE_CUDA_VERSION, or 13.3.
int cuDriverGetVersion(int* version) {
  const char* text = getenv("FAKE_CUDA_VERSION");
  *version = text != nullptr ? atoi(text) : 13030;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  snprintf(name, static_cast<size_t>(bytes), "Fake GPU %c", 'A' + device);
  return 0;
}
int cuDeviceGetUuid(uint8_t* uuid, int device) {
  memset(uuid, device + 1, 16);
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int bytes, int device) {
  snprintf(address, static_cast<size_t>(bytes), "0000:%02X:00.0", device + 1);
  return 0;
}

/// The function is its own name.
int cuLaunchKernel(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void**, void**) {
  if (capture_kernel()) return tell_call("cuLaunchKernel", 307);
  Work work = begin(WorkKind::kKernel, "cuLaunchKernel", 307);
  work.name = name;
  const uint32_t grid[] = {grid_x, grid_y, grid_z};
  const uint32_t block[] = {block_x, block_y, block_z};
  std::copy(grid, grid + 3, work.blocks);
  std::copy(block, block + 3, work.threads);
  work.shared_bytes = shared_bytes;
  work.registers = 32;
  work.stream = stream_number(stream);
  return finish(&work, g_duration_ns);
}
int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t bytes, void* stream) {
  return copy("cuMemcpyHtoDAsync_v2", 277, 1, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoHAsync_v2", 279, 2, bytes, stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t bytes, void* stream) {
  return copy("cuMemcpyDtoDAsync_v2", 281, 8, bytes, stream);
}
int cuMemsetD8Async(uint64_t, unsigned char, size_t bytes, void* stream) {
  Work work = begin(WorkKind::kSet, "cuMemsetD8Async", 216);
  work.bytes = bytes;
  work.to = 3;
  work.stream = stream_number(stream);
  return finish(&work, bytes / 20 + 1000);
}
int cuGraphLaunch(void* graph, void* stream) {
  Work work = begin(WorkKind::kGraph, "cuGraphLaunch", 514);
  work.graph = graph;
  work.nodes = node_count(graph);
  work.stream = stream_number(stream);
  return finish(&work, 50'000);
}
/// The device that FAKE_CUDA_DEVICE names is everybody's current one.
int cuCtxGetDevice(int* device) {
  const char* text = getenv("FAKE_CUDA_DEVICE");
  if (text == nullptr) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  *device = atoi(text);
  return 0;
}
int cuDevicePrimaryCtxReset_v2(int) {
  tell_end(WorkKind::kEndContext, "cuDevicePrimaryCtxReset_v2", 545);
  return 0;
}
int cuCtxSynchronize() { return synchronize("cuCtxSynchronize", 17); }
}
// NOLINTEND(readability-identifier-naming)
