/// What the fake driver tells the fake CUPTI: one piece of work, or one call, as it happens. The
/// fakes stand in for NVIDIA's libraries on machines without a GPU.
/// Thread: the one that calls the driver.
#pragma once

#include <cstdint>

namespace aon::fake {

enum class WorkKind : uint32_t {
  kKernel,
  kCopy,
  kSet,
  kGraph,
  kSynchronize,
  kEndContext,
  kReleaseContext,  ///< not work, and not the last use of it
  kMakeGraph,       ///< not work: an executable one is there
  kCall,            ///< not work, but a call that CUPTI records
};

struct Work {
  WorkKind kind;
  const char* name;      ///< of a kernel
  const char* function;  /// of the driver
  uint32_t function_id;
  uint32_t correlation;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t blocks[3];
  uint32_t threads[3];
  uint32_t shared_bytes;
  const void* graph;   ///< executable; null: of nobody
  uint32_t nodes;      ///< of a graph
  uint16_t registers;  ///< per thread
  uint8_t copy_kind;   ///< CUpti_ActivityMemcpyKind
  uint8_t from;        ///< CUpti_ActivityMemoryKind
  uint8_t to;
  uint64_t bytes;
  uint64_t call_start_ns;  ///< CLOCK_REALTIME
  uint64_t call_end_ns;
  uint64_t start_ns;  ///< on the device
  uint64_t end_ns;
  int32_t result;  ///< of the call, where it started no work
};

using Listener = void (*)(const Work& work);

/// When all that the current device has to do in the stream is done; now, where that is over.
uint64_t stream_end_ns(void* stream);
/// The capture of the calling thread, if there is one, comes to nothing from now on.
bool break_capture();
/// Whether the calling thread's launch goes into a graph that is being captured, and does not run.
bool capture_kernel();
/// A call that ends a context, or does not.
void tell_end(WorkKind kind, const char* function, uint32_t function_id);
/// A call that starts no work: a launch into a capture, and its begin and end. Returns `result`.
int tell_call(const char* function, uint32_t function_id, int result = 0);
/// An executable graph was made.
void tell_graph(const void* graph);
/// Kernels of a graph; 1 for one that was not captured.
uint32_t node_count(const void* graph);

}  // namespace aon::fake

extern "C" {
/// Of the fake libcuda.so.1.
void fake_cuda_listen(aon::fake::Listener listener);
/// A call that breaks captures of graphs in mode GLOBAL of other threads, unless the calling thread
/// has said that it is not of them. Which calls of CUPTI are is not known: here all are.
void fake_cuda_note_unsafe_call();
/// The calling thread's device; its context is the device + 1.
int fake_cuda_set_device(uint32_t device);
/// How long kernels take from now on; 10 us.
void fake_cuda_set_duration(uint64_t ns);
}
