/// Why perf_event_open() says no and what helps, in the same words from agent, application and
/// `aon doctor`. Callers add what they know themselves: which event, the level that is set.
/// Depends on nothing.   Thread: any.   Signal: safe.   Cost: none.
#pragma once

#include <errno.h>

namespace aon {

/// What an event reaches, as the highest kernel.perf_event_paranoid that still allows it.
enum class PerfReach : int { kWholeCpu = 0, kKernelMode = 1, kUserMode = 2 };

struct PerfRefusal {
  const char* reason;  ///< "": this error has no words but strerror()'s
  const char* remedy;
};

constexpr int kUnknownParanoidLevel = 1 << 30;

constexpr const char* perf_paranoid_remedy(PerfReach reach) {
  switch (reach) {
    case PerfReach::kWholeCpu:
      return "sysctl kernel.perf_event_paranoid=0";
    case PerfReach::kKernelMode:
      return "sysctl kernel.perf_event_paranoid=1";
    case PerfReach::kUserMode:
      break;
  }
  return "sysctl kernel.perf_event_paranoid=2";
}

/// Whether there is nothing that counts the event.
constexpr bool is_perf_absence(int error_number) {
  return error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENODEV;
}

/// `error_number` is positive. An event of hardware is "no PMU" where it is absent. Where the level
/// that is set allows the event, it is not what forbids it.
constexpr PerfRefusal perf_refusal(int error_number, PerfReach reach,
                                   int paranoid_level = kUnknownParanoidLevel) {
  if (is_perf_absence(error_number))
    return {"no PMU is visible", "bare metal, or a virtual PMU (QEMU: -cpu host,pmu=on)"};
  if (error_number == EACCES && paranoid_level > static_cast<int>(reach))
    return {"kernel.perf_event_paranoid forbids it", perf_paranoid_remedy(reach)};
  switch (error_number) {
    case EACCES:
    case EPERM:
      return {"perf_event_open is forbidden (container or lockdown)",
              "docker run --cap-add PERFMON"};
    case ENOSYS:
      return {"no perf_event_open (kernel or seccomp filter)",
              "run outside the container's seccomp profile"};
    case EMFILE:
    case ENFILE:
      return {"no file descriptor left for counters", "ulimit -n 65536"};
    case EBUSY:
      return {"another tool holds the PMU", "stop the other profiler of this node"};
    default:
      return {"", ""};
  }
}

}  // namespace aon
