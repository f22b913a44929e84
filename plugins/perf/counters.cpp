#include "perf/counters.h"

#include <cerrno>
#include <utility>

namespace aon::perf {

perf_event_attr attributes(const EventType& type, const Probe& how) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = type.type;
  attr.config = type.config;
  attr.inherit = 1;
  attr.inherit_thread = how.threads_only ? 1 : 0;
  attr.config1 = type.config1;
  attr.config2 = type.config2;
  attr.exclude_user = type.kernel_only ? 1 : 0;
  attr.exclude_kernel = how.exclude_kernel || type.user_only ? 1 : 0;
  attr.exclude_hv = 1;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return attr;
}

Probe probe(const Kernel& kernel, const EventType& type) {
  Probe how;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const int fd = kernel.open_event(attributes(type, how), 0);
    if (fd >= 0) {
      kernel.close_event(fd);
      how.available = true;
      how.error_number = 0;
      return how;
    }
    how.error_number = -fd;
    if (fd == -EINVAL && how.threads_only) {
      how.threads_only = false;
    } else if (fd == -EACCES && !how.exclude_kernel && !type.in_kernel && !type.kernel_only) {
      how.exclude_kernel = true;
    } else {
      break;
    }
  }
  return how;
}

Counter::~Counter() {
  for (const Task& task : tasks_) kernel_->close_event(task.fd);
}

Counter::Counter(Counter&& other) noexcept
    : kernel_(other.kernel_),
      type_(other.type_),
      how_(other.how_),
      tasks_(std::exchange(other.tasks_, {})),
      total_(other.total_) {}

Counter& Counter::operator=(Counter&& other) noexcept {
  std::swap(kernel_, other.kernel_);
  std::swap(type_, other.type_);
  std::swap(how_, other.how_);
  std::swap(tasks_, other.tasks_);
  std::swap(total_, other.total_);
  return *this;
}

int Counter::open(const std::vector<pid_t>& tasks) {
  const perf_event_attr attr = attributes(*type_, how_);
  int error_number = 0;
  for (const pid_t tid : tasks) {
    const int fd = kernel_->open_event(attr, tid);
    if (fd >= 0) {
      tasks_.push_back({fd, {}});
    } else if (fd != -ESRCH && error_number == 0) {
      error_number = -fd;
    }
  }
  return error_number;
}

bool Counter::take(Task& task, const Raw& now) {
  const uint64_t value = now.value - task.taken.value;
  const uint64_t enabled_ns = now.enabled_ns - task.taken.enabled_ns;
  const uint64_t running_ns = now.running_ns - task.taken.running_ns;
  const bool multiplexed = running_ns < enabled_ns;
  if (multiplexed && running_ns < kMinRunningNs) return false;
  const double scale =
      multiplexed ? static_cast<double>(enabled_ns) / static_cast<double>(running_ns) : 1.0;
  total_.value += static_cast<double>(value) * scale;
  total_.enabled_ns += enabled_ns;
  total_.running_ns += running_ns;
  task.taken = now;
  return true;
}

std::optional<Reading> Counter::read() {
  bool any = false;
  for (Task& task : tasks_) {
    Raw now;
    if (kernel_->read_event(task.fd, &now, sizeof(now)) != sizeof(now)) continue;
    any |= take(task, now);
  }
  if (!any) return std::nullopt;
  return total_;
}

}  // namespace aon::perf
