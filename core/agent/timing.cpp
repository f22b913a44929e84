#include "core/agent/timing.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace aon::agent {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kSecondNs = 1000 * kMsNs;

}  // namespace

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
