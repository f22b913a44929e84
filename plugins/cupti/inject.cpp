// What CUDA calls, once, inside cuInit of the program; and what a program may call itself.
#include <aon/crash.h>

#include "cupti/session.h"

extern "C" {

/// 1: loaded; whatever went wrong is ours to tell, never CUDA's.
// NOLINTNEXTLINE(readability-identifier-naming): CUDA's name
AON_EXPORT int InitializeInjection(void) {
  aon::cupti::start();
  aon::aon_follow_crashes();
  return 1;
}

/// In mode yield: gives CUPTI to another client until aon_gpu_resume(). 1: done, 0: not. It is not
/// taken back from a program that has launched graphs, and a program that makes some in the pause
/// must not ask for it: CUPTI may crash on them.
AON_EXPORT int aon_gpu_pause(void) { return aon::cupti::pause() ? 1 : 0; }
AON_EXPORT int aon_gpu_resume(void) { return aon::cupti::resume() ? 1 : 0; }
}
