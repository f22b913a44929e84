/* Keeps the first GPU idle, then busy, then idle, for so many seconds each, and prints the time (ns
 * since 1970) at which each phase begins and the last one ends:
 *
 *     gpu_busy 3 4 3  ->  "idle NS", "busy NS", "launched KERNELS", "idle NS", "end NS"
 *
 * Needs a driver and no toolkit: the kernel is PTX, the functions are found by name. Without a GPU
 * it exits with 77. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKS 2048
#define THREADS 256
#define ROUNDS 20000u /* some ms per launch */
#define SKIPPED 77

static const char kPtx[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry spin(.param .u64 out, .param .u64 rounds)\n{\n"
    ".reg .pred %p<3>;\n.reg .f32 %f<3>;\n.reg .b64 %r<4>;\n"
    "ld.param.u64 %r1, [out];\nld.param.u64 %r2, [rounds];\n"
    "mov.f32 %f1, 0f3F800001;\nmov.f32 %f2, 0f3F7FFFFF;\nmov.u64 %r3, 0;\n"
    "LOOP:\n"
    "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n"
    "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n"
    "add.u64 %r3, %r3, 1;\nsetp.lt.u64 %p1, %r3, %r2;\n@%p1 bra LOOP;\n"
    "setp.eq.f32 %p2, %f1, 0f00000000;\n@%p2 st.global.f32 [%r1], %f1;\nret;\n}\n";

static void* driver;

static void* function(const char* name) {
  void* found = dlsym(driver, name);
  if (found == NULL) {
    fprintf(stderr, "gpu_busy: libcuda has no %s\n", name);
    exit(1);
  }
  return found;
}

static void check(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "gpu_busy: %s: error %d\n", what, error);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void say(const char* phase) {
  printf("%s %llu\n", phase, (unsigned long long)now_ns());
  fflush(stdout);
}

static void rest(double seconds) {
  const struct timespec pause = {(time_t)seconds,
                                 (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&pause, NULL);
}

typedef int Launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);

/* Returns how many kernels. */
static long work(double seconds, void* kernel, uint64_t memory) {
  Launch* launch = (Launch*)function("cuLaunchKernel");
  int (*synchronize)(void) = (int (*)(void))function("cuCtxSynchronize");
  uint64_t rounds = ROUNDS;
  void* arguments[] = {&memory, &rounds};
  const uint64_t end_ns = now_ns() + (uint64_t)(seconds * 1e9);
  long launched = 0;
  while (now_ns() < end_ns) {
    for (int i = 0; i < 4; ++i) {
      check(launch(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL),
            "cuLaunchKernel");
      ++launched;
    }
    check(synchronize(), "cuCtxSynchronize");
  }
  return launched;
}

int main(int count, char** arguments) {
  double seconds[3] = {3, 4, 3};
  for (int i = 1; i < count && i <= 3; ++i) seconds[i - 1] = atof(arguments[i]);
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL || ((int (*)(unsigned))function("cuInit"))(0) != 0) return SKIPPED;
  int device = 0;
  void* context = NULL;
  void* module = NULL;
  void* kernel = NULL;
  uint64_t memory = 0;
  check(((int (*)(int*, int))function("cuDeviceGet"))(&device, 0), "cuDeviceGet");
  check(((int (*)(void**, int))function("cuDevicePrimaryCtxRetain"))(&context, device), "context");
  check(((int (*)(void*))function("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  check(((int (*)(void**, const void*))function("cuModuleLoadData"))(&module, kPtx), "module");
  check(((int (*)(void**, void*, const char*))function("cuModuleGetFunction"))(&kernel, module,
                                                                               "spin"),
        "cuModuleGetFunction");
  check(((int (*)(uint64_t*, size_t))function("cuMemAlloc_v2"))(&memory, 4), "cuMemAlloc");
  say("idle");
  rest(seconds[0]);
  say("busy");
  printf("launched %ld\n", work(seconds[1], kernel, memory));
  say("idle");
  rest(seconds[2]);
  say("end");
  return 0;
}
