// With FAKE_NCCL_CUDA=1 each launch is a kernel of the driver, which tests have made up
// (tests/fake_cuda): CUPTI sees NCCL's kernels, as it does on a device. FAKE_NCCL_KERNEL_NS is what
// one takes.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace aon::test::nccl {

namespace {

using Init = int (*)(unsigned);
using Launch = int (*)(const char*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, void*, void**, void**);

Launch start_device() {
  if (std::getenv("FAKE_NCCL_CUDA") == nullptr) return nullptr;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) {
    std::fprintf(stderr, "fake nccl: %s\n", dlerror());
    std::abort();
  }
  reinterpret_cast<Init>(dlsym(driver, "cuInit"))(0);
  if (const char* ns = std::getenv("FAKE_NCCL_KERNEL_NS")) {
    const auto set = reinterpret_cast<void (*)(uint64_t)>(dlsym(driver, "fake_cuda_set_duration"));
    set(std::strtoull(ns, nullptr, 10));
  }
  return reinterpret_cast<Launch>(dlsym(driver, "cuLaunchKernel"));
}

const Launch launch = start_device();  // before the first communicator, as programs do it

}  // namespace

void launch_kernel() {
  if (launch == nullptr) return;
  launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr,
         nullptr);
}

}  // namespace aon::test::nccl
