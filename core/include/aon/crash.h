/// Crashes in AON's own code, told by the process itself. The kernel's log has none of those whose
/// signal is handled (core/service/crash_log.h), and Open MPI handles faults to print a stack. AON
/// installs no handler where there is none: it steps in front of those.
///
/// Where the instruction was, as one word of the ring's header: library + 1 in the upper four bits,
/// offset in the library in the others.
#pragma once

#include <aon/writer.h>

#include <cstdint>

namespace aon {

constexpr const char* kOwnLibraries[] = {"libaon.so", "libaon-mpi.so", "libaon-nvtx.so",
                                         "libaon-cupti.so", "libnccl-profiler-aon.so"};
constexpr uint32_t kOwnLibraryCount = sizeof kOwnLibraries / sizeof kOwnLibraries[0];
constexpr uint32_t kCrashOffsetBits = 28;

constexpr uint32_t crash_place(uint32_t library, uint64_t offset) {
  return (library + 1) << kCrashOffsetBits |
         (static_cast<uint32_t>(offset) & ((1u << kCrashOffsetBits) - 1));
}

extern "C" {

/// Handlers that libraries have installed to print a stack before the program dies (Open MPI, UCX,
/// libgfortran) are preceded by a note of ours; they run as before, at the same depth of the stack.
/// Handlers of anybody else are left alone, and all of them where nothing is recorded. Each of our
/// libraries calls it when it is in use: it also learns where they are.
/// Thread: any.   Signal: never.   Cost: some microseconds.
AON_EXPORT void aon_follow_crashes() noexcept;
}

}  // namespace aon
