/// CUPTI for another profiler of the program's, between two calls: where a process can have one
/// client of CUPTI only (before CUDA 13.3, or with a driver before r610), that is AON. C11 and
/// C++20, header-only, on annotate.h: nothing of AON is needed to compile, link and run.
///
///     if (aon_gpu_pause()) {         // AON has flushed what was recorded and has unsubscribed
///       profile_with_cupti(step);    // torch.profiler, Nsight's libraries, the program's own
///       aon_gpu_resume();            // that one has unsubscribed before
///     }
///
/// It is done in `aon-run --cupti-mode yield` (AON_CUPTI_MODE=yield) only: in any other mode CUPTI
/// stays AON's, and both calls answer 0. Work of the GPU between the two is not recorded: it is an
/// interval "[GPU work not recorded: paused]" of the archive and in /gpu/unrecorded.
/// A pair holds for the whole process and does not nest: one resume ends any number of pauses.
/// Thread: any; those who ask at the same time are answered one after the other.   Signal: never.
/// Cost: AON's thread flushes CUPTI's buffers while the caller waits, some ms, and 2 s at most.
/// Without AON, or without CUDA in the process, 1 ns.
#pragma once

#include <aon/annotate.h>

#ifdef __cplusplus
extern "C" {
#endif

// NOLINTBEGIN(modernize-use-nullptr,readability-identifier-naming)

/// What libaon.so has behind the functions of annotate.h. An older one has nothing there.
struct aon_gpu_functions {
  struct aon_annotations annotations;
  int (*pause)(void);
  int (*resume)(void);
};

static inline const struct aon_gpu_functions* aon_gpu_functions_(void) {
  const struct aon_annotations* found = aon_annotations_();
  return found->struct_bytes >= sizeof(struct aon_gpu_functions)
             ? (const struct aon_gpu_functions*)(const void*)found
             : 0;
}

/// Gives CUPTI to another client. 1: it is free, or was so already.
/// Errors: 0, and nothing is changed: not in mode yield, cuInit() was not called yet, AON does not
/// record this process's GPU work (the ledger says why), the CUPTI may hang on it (before 13.0.1),
/// a fork()ed child, or no answer within 2 s.
static inline int aon_gpu_pause(void) {
  const struct aon_gpu_functions* functions = aon_gpu_functions_();
  return functions != 0 ? functions->pause() : 0;
}

/// Takes it back. 1: work is recorded again, or was not paused; graphs node by node from then on.
/// Errors: 0, and it is not recorded: as above, another client has not unsubscribed, or the program
/// has graphs, on which CUPTI may crash then; the provider `cupti` of the ledger says which. A
/// program that makes its first graph in the pause must not ask for it.
static inline int aon_gpu_resume(void) {
  const struct aon_gpu_functions* functions = aon_gpu_functions_();
  return functions != 0 ? functions->resume() : 0;
}

// NOLINTEND(modernize-use-nullptr,readability-identifier-naming)

#ifdef __cplusplus
}
#endif
