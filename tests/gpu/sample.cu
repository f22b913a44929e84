// A program as users write them, for nvcc and the CUDA runtime (static by nvcc's default): streams, copies of
// pageable and pinned memory, a graph, a library's kind of template kernel. Prints what it did:
//
//     sample STEPS    "axpy N", "fill<float> N" (launches; those of the graph are "graphs N" times two
//                     axpy), "copies N", "bytes N", "sum X"
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace {

constexpr int kCount = 1 << 20;
constexpr int kThreads = 256;
constexpr int kBlocks = kCount / kThreads;
constexpr size_t kBytes = kCount * sizeof(float);

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
    std::printf("no GPU of NVIDIA: %s\n", cudaGetErrorString(error));
    std::exit(77);
  }
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void axpy(float* y, const float* x, float a) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  y[i] += a * x[i];
}

template <typename T>
__global__ void fill(T* values, T value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

struct Counts {
  long axpys, fills, copies, graphs;
};

cudaGraphExec_t capture(cudaStream_t stream, float* y, const float* x) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  axpy<<<kBlocks, kThreads, 0, stream>>>(y, x, 1.0F);
  axpy<<<kBlocks, kThreads, 0, stream>>>(y, x, 1.0F);
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  return executable;
}

}  // namespace

int main(int count, char** words) {
  const int steps = count > 1 ? std::atoi(words[1]) : 10;
  cudaStream_t work;
  cudaStream_t moves;
  cudaEvent_t ready;
  check(cudaStreamCreate(&work), "cudaStreamCreate");
  check(cudaStreamCreateWithFlags(&moves, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming), "cudaEventCreate");
  float* x;
  float* y;
  float* pinned;
  float* pageable = static_cast<float*>(std::calloc(kCount, sizeof(float)));
  check(cudaMalloc(&x, kBytes), "cudaMalloc");
  check(cudaMalloc(&y, kBytes), "cudaMalloc");
  check(cudaMallocHost(&pinned, kBytes), "cudaMallocHost");
  check(cudaMemset(y, 0, kBytes), "cudaMemset");
  const cudaGraphExec_t graph = capture(work, y, x);

  Counts done{};
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kCount; ++i) pinned[i] = 1.0F;
    check(cudaMemcpyAsync(x, pinned, kBytes, cudaMemcpyHostToDevice, moves), "copy");
    check(cudaEventRecord(ready, moves), "event");
    check(cudaStreamWaitEvent(work, ready, 0), "wait");
    axpy<<<kBlocks, kThreads, 0, work>>>(y, x, 2.0F);
    check(cudaGraphLaunch(graph, work), "cudaGraphLaunch");
    check(cudaMemcpyAsync(pageable, y, kBytes, cudaMemcpyDeviceToHost, work), "copy");
    check(cudaStreamSynchronize(work), "synchronize");
    fill<float><<<kBlocks, kThreads>>>(x, 0.0F);
    check(cudaDeviceSynchronize(), "synchronize");
    done.axpys += 1;
    done.fills += 1;
    done.copies += 2;
    done.graphs += 1;
  }
  check(cudaGetLastError(), "launches");
  double sum = 0;
  for (int i = 0; i < kCount; ++i) sum += pageable[i];
  std::printf("axpy %ld\nfill %ld\ngraphs %ld\ncopies %ld\nbytes %zu\nsum %.0f\n", done.axpys,
              done.fills, done.graphs, done.copies, static_cast<size_t>(done.copies) * kBytes, sum);
  return 0;
}
