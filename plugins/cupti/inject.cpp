// What CUDA calls, once, inside cuInit of the program; and what a program may call itself.
#include <aon/crash.h>
#include <aon/gpu_control.h>

#include "cupti/session.h"

extern "C" {

// The program's, by aon/gpu.h or their names here.
AON_EXPORT int aon_gpu_pause(void) { return aon::cupti::pause() ? 1 : 0; }
AON_EXPORT int aon_gpu_resume(void) { return aon::cupti::resume() ? 1 : 0; }

/// 1: loaded; whatever went wrong is ours to tell, never CUDA's.
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
AON_EXPORT int InitializeInjection(void) {
  aon::cupti::start();
  aon::aon_set_gpu_control(aon_gpu_pause, aon_gpu_resume);
  aon::aon_follow_crashes();
  return 1;
}
}
