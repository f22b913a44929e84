#include "core/agent/timing.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace aon::agent {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kSecondNs = 1000 * kMsNs;

uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecondNs + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t monotonic_ns() noexcept { return now_ns(CLOCK_MONOTONIC); }

uint64_t wall_ns() noexcept { return now_ns(CLOCK_REALTIME); }

int wait_for_events(int epoll, std::span<epoll_event> events, uint64_t timeout_ns) noexcept {
  const auto capacity = static_cast<int>(events.size());
  const timespec timeout{static_cast<time_t>(timeout_ns / kSecondNs),
                         static_cast<long>(timeout_ns % kSecondNs)};
  const long count =
      ::syscall(SYS_epoll_pwait2, epoll, events.data(), capacity, &timeout, nullptr, size_t{0});
  if (count >= 0 || errno == EINTR) return static_cast<int>(count);
  // Linux before 5.11, or a container that allows only what it knew.
  const uint64_t timeout_ms = (timeout_ns + kMsNs - 1) / kMsNs;
  return ::epoll_wait(epoll, events.data(), capacity, static_cast<int>(timeout_ms));
}

}  // namespace aon::agent
