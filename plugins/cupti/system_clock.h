/// A clock of the system as one number.
/// Thread: any.   Signal: safe.   Cost: some ten ns; a thread's CPU time is a system call.
#pragma once

#include <time.h>

#include <cstdint>

namespace aon::cupti {

/// ns; 0 when there is no such clock.
inline uint64_t read_clock(clockid_t clock) {
  timespec now;
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace aon::cupti
