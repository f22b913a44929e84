/// Who can give CUPTI away: libaon-cupti.so, which CUDA loads in cuInit, tells libaon.so, whose
/// table of functions gpu.h calls.
/// Owner: libaon.so.   Thread: any.   Signal: never.
#pragma once

namespace aon {
extern "C" {

/// Both answer 1 where it is done and 0 where not; they stay for the life of the process. Announced
/// once, in cuInit; before that there is nothing to give away.
__attribute__((visibility("default"))) void aon_set_gpu_control(int (*pause)(void),
                                                                int (*resume)(void)) noexcept;
}
}  // namespace aon
