#include "perf/counters.h"

#include <cerrno>
#include <string>
#include <utility>

namespace aon::perf {
namespace {

constexpr size_t kEventWords = 3;        ///< value, time enabled, time running
constexpr size_t kGroupHeaderWords = 3;  ///< count, time enabled, time running
constexpr int kPmuShift = 32;            ///< in the config of an event that all PMUs have

}  // namespace

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
    const int fd = kernel.open_event(attributes(type, how), 0, kNoGroup);
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

bool has_hybrid_cores(const Kernel& kernel) {
  const std::string pmus = "/sys/bus/event_source/devices/";
  return !kernel.read_file(pmus + "cpu_core/cpus").empty() &&
         !kernel.read_file(pmus + "cpu_atom/cpus").empty();
}

bool is_of_performance_cores(const EventType& type) {
  const bool is_of_any = type.type == PERF_TYPE_HARDWARE || type.type == PERF_TYPE_HW_CACHE;
  return type.type == PERF_TYPE_RAW || (is_of_any && type.config >> kPmuShift == 0);
}

bool probe_groups(const Kernel& kernel, const EventType& type, const Probe& how) {
  perf_event_attr attr = attributes(type, how);
  attr.read_format |= PERF_FORMAT_GROUP;
  const int fd = kernel.open_event(attr, 0, kNoGroup);
  if (fd >= 0) kernel.close_event(fd);
  return fd >= 0;
}

CounterGroup::CounterGroup(const Kernel& kernel, std::vector<Event> events)
    : kernel_(&kernel),
      events_(std::move(events)),
      totals_(events_.size()),
      readings_(events_.size()),
      words_(kGroupHeaderWords + events_.size()) {}

CounterGroup::~CounterGroup() { close(); }

void CounterGroup::close() {
  for (const Task& task : tasks_) {
    for (const Member& member : task) kernel_->close_event(member.fd);
  }
  tasks_.clear();
  totals_.assign(events_.size(), {});
  for (Event& event : events_) {
    event.is_open = false;
    event.error_number = 0;
  }
}

CounterGroup::CounterGroup(CounterGroup&& other) noexcept
    : kernel_(other.kernel_),
      events_(std::move(other.events_)),
      tasks_(std::exchange(other.tasks_, {})),
      totals_(std::move(other.totals_)),
      readings_(std::move(other.readings_)),
      words_(std::move(other.words_)) {}

CounterGroup& CounterGroup::operator=(CounterGroup&& other) noexcept {
  std::swap(kernel_, other.kernel_);
  std::swap(events_, other.events_);
  std::swap(tasks_, other.tasks_);
  std::swap(totals_, other.totals_);
  std::swap(readings_, other.readings_);
  std::swap(words_, other.words_);
  return *this;
}

int CounterGroup::open_member(size_t index, pid_t tid, int group) {
  Event& event = events_[index];
  perf_event_attr attr = attributes(*event.type, event.how);
  if (events_.size() > 1) attr.read_format |= PERF_FORMAT_GROUP;
  const int fd = kernel_->open_event(attr, tid, group);
  event.is_open |= fd >= 0;
  // Linux 6.18: ENODEV where the group's first event went with its thread.
  const bool has_ended = fd == -ESRCH || (fd == -ENODEV && group != kNoGroup);
  if (fd < 0 && !has_ended && event.error_number == 0) event.error_number = -fd;
  return fd;
}

void CounterGroup::open(std::span<const pid_t> tasks) {
  for (const pid_t tid : tasks) {
    Task task;
    for (size_t event = 0; event < events_.size(); ++event) {
      const int fd = open_member(event, tid, task.empty() ? kNoGroup : task.front().fd);
      if (fd >= 0) task.push_back({event, fd, {}});
    }
    if (!task.empty()) tasks_.push_back(std::move(task));
  }
}

bool CounterGroup::take(Member& member, const Raw& now) {
  const uint64_t value = now.value - member.taken.value;
  const uint64_t enabled_ns = now.enabled_ns - member.taken.enabled_ns;
  const uint64_t running_ns = now.running_ns - member.taken.running_ns;
  const bool multiplexed = running_ns < enabled_ns;
  if (multiplexed && running_ns < kMinRunningNs) return false;
  const double scale =
      multiplexed ? static_cast<double>(enabled_ns) / static_cast<double>(running_ns) : 1.0;
  Reading& total = totals_[member.event];
  total.value += static_cast<double>(value) * scale;
  total.enabled_ns += enabled_ns;
  total.running_ns += running_ns;
  member.taken = now;
  return true;
}

/// Into words_: of one event its value and two times; of a group a count, two times, the values.
bool CounterGroup::read_task(const Task& task) {
  const size_t count = events_.size() > 1 ? kGroupHeaderWords + task.size() : kEventWords;
  const size_t byte_count = count * sizeof(uint64_t);
  const ssize_t got = kernel_->read_event(task.front().fd, words_.data(), byte_count);
  if (got != static_cast<ssize_t>(byte_count)) return false;
  return events_.size() == 1 || words_[0] == task.size();
}

std::span<const std::optional<Reading>> CounterGroup::read() {
  readings_.assign(events_.size(), std::nullopt);
  for (Task& task : tasks_) {
    if (!read_task(task)) continue;
    for (size_t i = 0; i < task.size(); ++i) {
      const size_t value = events_.size() > 1 ? kGroupHeaderWords + i : 0;
      if (take(task[i], {words_[value], words_[1], words_[2]})) readings_[task[i].event].emplace();
    }
  }
  for (size_t event = 0; event < events_.size(); ++event) {
    if (readings_[event]) readings_[event] = totals_[event];
  }
  return readings_;
}

}  // namespace aon::perf
