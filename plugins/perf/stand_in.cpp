#include "perf/stand_in.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace aon::perf {

StandIn::StandIn(const Kernel& kernel, pid_t pid)
    : kernel_(&kernel), pid_(pid), counter_(kernel, pid) {
  first_ = last_ = read_usage().value_or(Usage{});
  tasks_ = counter_.read();
}

std::optional<StandIn::Usage> StandIn::read_usage() const {
  const std::string text = kernel_->read_file("/proc/" + std::to_string(pid_) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  Usage usage;
  unsigned long long user = 0;
  unsigned long long system = 0;
  unsigned long long minor = 0;
  unsigned long long major = 0;
  unsigned long long start = 0;
  // State, five ids and the flags; faults, and those of children; CPU times, those of children,
  // priority, nice, threads, a zero; the start.
  constexpr const char* kFields =
      " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu"
      " %*d %*d %*d %*d %*d %*d %llu";
  const int found =
      sscanf(text.c_str() + name_end + 1, kFields, &minor, &major, &user, &system, &start);
  if (found != 5) return std::nullopt;
  usage.minor_faults = minor;
  usage.major_faults = major;
  usage.cpu_ticks = user + system;
  usage.start_ticks = start;
  return usage;
}

bool StandIn::read() {
  const std::optional<Usage> usage = read_usage();
  // Its number may be another's by now.
  if (!usage || usage->start_ticks != first_.start_ticks) return false;
  last_ = *usage;
  tasks_ = counter_.read();
  return true;
}

std::optional<double> StandIn::count_of(const EventType& type) const {
  if (!is_software(type, type.config)) return std::nullopt;
  const uint64_t minor = last_.minor_faults - first_.minor_faults;
  const uint64_t major = last_.major_faults - first_.major_faults;
  switch (type.config) {
    case PERF_COUNT_SW_TASK_CLOCK:
      return static_cast<double>(last_.cpu_ticks - first_.cpu_ticks) * 1e9 /
             static_cast<double>(sysconf(_SC_CLK_TCK));
    case PERF_COUNT_SW_PAGE_FAULTS:
      return static_cast<double>(minor + major);
    case PERF_COUNT_SW_PAGE_FAULTS_MIN:
      return static_cast<double>(minor);
    case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
      return static_cast<double>(major);
    case PERF_COUNT_SW_CONTEXT_SWITCHES:
      return static_cast<double>(tasks_.context_switches);
    case PERF_COUNT_SW_CPU_MIGRATIONS:
      if (!tasks_.has_migrations) return std::nullopt;
      return static_cast<double>(tasks_.migrations);
    default:
      return std::nullopt;
  }
}

}  // namespace aon::perf
