/// Clocks as numbers, and times of day as texts.
/// Thread: any.   Cost: reading a clock.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

namespace aon {

/// ns of `clock`.
inline uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

/// ns of CLOCK_MONOTONIC.
inline uint64_t monotonic_ns() noexcept { return now_ns(CLOCK_MONOTONIC); }

/// ms of CLOCK_MONOTONIC, for deadlines: with a sign, so that one may be subtracted.
inline int64_t now_ms() noexcept { return static_cast<int64_t>(monotonic_ns() / 1'000'000); }

/// ns of CLOCK_REALTIME.
inline uint64_t wall_ns() noexcept { return now_ns(CLOCK_REALTIME); }

/// `time_ns` since 1970 in UTC: "2026-01-31T12:00:00.000000000Z".
std::string iso_time(uint64_t time_ns);

}  // namespace aon
