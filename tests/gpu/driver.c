#define _GNU_SOURCE
#include "tests/gpu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSkipped = 77, kNoDevice = 100, kStubLibrary = 34, kMajor = 75, kMinor = 76 };

Driver driver;
void* work_stream;
static int g_device;

static const struct {
  const char* name;
  void* function; /* its place in `driver` */
} kFunctions[] = {
    {"cuInit", &driver.init},
    {"cuDeviceGet", &driver.get_device},
    {"cuDeviceGetAttribute", &driver.get_attribute},
    {"cuDevicePrimaryCtxRetain", &driver.retain_context},
    {"cuCtxSetCurrent", &driver.set_context},
    {"cuCtxSynchronize", &driver.wait_for_context},
    {"cuModuleLoadData", &driver.load_module},
    {"cuModuleGetFunction", &driver.get_function},
    {"cuMemAlloc_v2", &driver.allocate},
    {"cuMemHostAlloc", &driver.allocate_on_host},
    {"cuStreamCreate", &driver.create_stream},
    {"cuLaunchKernel", &driver.launch},
    {"cuMemcpyDtoDAsync_v2", &driver.copy_on_device},
    {"cuMemcpyHtoDAsync_v2", &driver.copy_to_device},
    {"cuEventCreate", &driver.create_event},
    {"cuEventRecord", &driver.record_event},
    {"cuEventElapsedTime", &driver.elapsed_ms},
    {"cuStreamBeginCapture_v2", &driver.begin_capture},
    {"cuStreamEndCapture", &driver.end_capture},
    {"cuGraphInstantiateWithFlags", &driver.instantiate},
    {"cuGraphLaunch", &driver.launch_graph},
};

static void find_functions(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    printf("no libcuda.so.1: no driver of NVIDIA\n");
    exit(kSkipped);
  }
  for (size_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; ++i) {
    void* found = dlsym(library, kFunctions[i].name);
    if (found == NULL) {
      fprintf(stderr, "libcuda has no %s\n", kFunctions[i].name);
      exit(1);
    }
    memcpy(kFunctions[i].function, &found, sizeof found);
  }
}

void check(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, error);
  exit(1);
}

void open_driver(void) {
  void* context = NULL;
  find_functions();
  const int error = driver.init(0);
  if (error == kNoDevice || error == kStubLibrary) {
    printf("no GPU of NVIDIA: cuInit says %d\n", error);
    exit(kSkipped);
  }
  check(error, "cuInit");
  check(driver.get_device(&g_device, 0), "cuDeviceGet");
  check(driver.retain_context(&context, g_device), "cuDevicePrimaryCtxRetain");
  check(driver.set_context(context), "cuCtxSetCurrent");
  check(driver.create_stream(&work_stream, 1), "cuStreamCreate");
}

int compute_capability(void) {
  int major = 0;
  int minor = 0;
  check(driver.get_attribute(&major, kMajor, g_device), "cuDeviceGetAttribute");
  check(driver.get_attribute(&minor, kMinor, g_device), "cuDeviceGetAttribute");
  return 10 * major + minor;
}

void* find_kernel(const char* ptx, const char* name) {
  void* module = NULL;
  void* kernel = NULL;
  check(driver.load_module(&module, ptx), "cuModuleLoadData");
  check(driver.get_function(&kernel, module, name), "cuModuleGetFunction");
  return kernel;
}

uint64_t allocate(size_t bytes) {
  uint64_t address = 0;
  check(driver.allocate(&address, bytes), "cuMemAlloc");
  return address;
}

void launch(void* kernel, unsigned blocks, unsigned threads, uint64_t out, uint64_t rounds) {
  void* arguments[] = {&out, &rounds};
  check(driver.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, work_stream, arguments, NULL),
        "cuLaunchKernel");
}

void wait_for_device(void) { check(driver.wait_for_context(), "cuCtxSynchronize"); }
