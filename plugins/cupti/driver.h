/// Functions of CUDA's driver that has loaded us: found, never linked.
/// Thread: any.   Cost: a look into a library that is there.
#pragma once

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

namespace aon::cupti {

/// A function of the driver that made us, or null: false.
template <class Function>
bool driver_function(const char* name, Function* function) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* symbol = driver != nullptr ? dlsym(driver, name) : nullptr;
  memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

/// Its CUDA: 13030 is 13.3, of r610. Where it is not told: the newest.
inline int driver_version() {
  int version = 0;
  int (*get)(int*);
  const bool is_told =
      driver_function("cuDriverGetVersion", &get) && get(&version) == 0 && version > 0;
  return is_told ? version : INT_MAX;
}

/// Whether the primary context of a device is there; true where that is not told.
inline bool is_context_alive(int device) {
  unsigned flags = 0;
  int is_active = 1;
  int (*get_state)(int, unsigned*, int*);
  return !driver_function("cuDevicePrimaryCtxGetState", &get_state) ||
         get_state(device, &flags, &is_active) != 0 || is_active != 0;
}

/// What CUPTI does in calls of the calling thread breaks no capture of a graph in another one: that
/// may be while one is captured in mode GLOBAL, PyTorch's, unless the thread says it is not of it.
inline void stay_out_of_captures() {
  constexpr int kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
  int mode = kRelaxed;
  int (*exchange)(int*);
  if (driver_function("cuThreadExchangeStreamCaptureMode", &exchange)) exchange(&mode);
}

}  // namespace aon::cupti
