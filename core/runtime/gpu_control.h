/// What gpu.h's functions do: they ask who has said that it can (aon/gpu_control.h).
/// Thread: any.   Signal: never.   Cost: that of whom it asks.
#pragma once

namespace aon::runtime {

/// 1: done. 0: not, or there is nobody.
int pause_gpu();
int resume_gpu();

}  // namespace aon::runtime
