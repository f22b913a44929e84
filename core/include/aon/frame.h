/// Frames of the stack: how a call is told that was left by longjmp or an exception.
/// Thread: any.   Signal: safe.   Cost: one load.
#pragma once

#include <cstdint>

namespace aon {

/// Frame of the calling function: its CFA, which costs no frame pointer.
[[gnu::always_inline]] inline const char* current_frame() {
  return static_cast<const char*>(__builtin_dwarf_cfa());
}

constexpr uint32_t kFrameBits = 48;
constexpr uint64_t kFrameMask = (uint64_t{1} << kFrameBits) - 1;

/// What an open call is known by: the frame of the calling function and, on x86-64, above it the
/// low bits of the return address, which lies below the frame for as long as the call runs.
[[gnu::always_inline]] inline uint64_t frame_mark() {
  const uint64_t frame = reinterpret_cast<uint64_t>(current_frame());
#if defined(__x86_64__)
  return reinterpret_cast<uint64_t>(__builtin_return_address(0)) << kFrameBits ^ frame;
#else
  return frame;
#endif
}

}  // namespace aon
