#include "perf/sampling/event.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "perf/cost.h"
#include "perf/counters.h"
#include "perf/sampling/ring.h"

namespace aon::perf {
namespace {

constexpr uint64_t kVirtualSampleNs = 20'000;
constexpr uint64_t kSampleNs = 3'000;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint64_t kDefaultMaxRateHz = 100'000;  ///< of the kernel

uint64_t max_rate_hz(const Kernel& kernel) {
  const std::string text = kernel.read_file("/proc/sys/kernel/perf_event_max_sample_rate");
  const uint64_t rate_hz = strtoull(text.c_str(), nullptr, 10);
  return rate_hz == 0 ? kDefaultMaxRateHz : rate_hz;
}

CallGraph call_graph_of(const std::string& text) {
  if (text == "none") return CallGraph::kNone;
  if (text == "dwarf") return CallGraph::kStackCopies;
  return text == "lbr" ? CallGraph::kBranches : CallGraph::kFramePointers;
}

/// 0, or the error.
int try_event(const Kernel& kernel, const SamplingEvent& event) {
  const int fd = kernel.open_event(event.attributes(event.rate_hz), 0, kNoGroup);
  if (fd < 0) return -fd;
  kernel.close_event(fd);
  return 0;
}

}  // namespace

perf_event_attr SamplingEvent::attributes(uint64_t hz) const {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  const bool is_hardware = source == SamplingSource::kCycles;
  attr.type = is_hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  attr.config =
      is_hardware ? uint64_t{PERF_COUNT_HW_CPU_CYCLES} : uint64_t{PERF_COUNT_SW_CPU_CLOCK};
  attr.freq = is_hardware ? 1 : 0;
  attr.sample_period = period_or_rate(hz);  // or sample_freq, its other name
  attr.sample_type = kSampleFields;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.exclude_callchain_kernel = 1;
  attr.exclude_callchain_user = call_graph == CallGraph::kFramePointers ? 0 : 1;
  attr.sample_max_stack = 0;  // as many as kernel.perf_event_max_stack says
  if (call_graph == CallGraph::kBranches) {
    attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
    attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
  }
  if (call_graph == CallGraph::kStackCopies) {
    attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr.sample_regs_user = kRegisterMask;
    attr.sample_stack_user = kStackCopyBytes;
  }
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.task = 1;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC_RAW;
  return attr;
}

uint64_t SamplingEvent::period_or_rate(uint64_t hz) const {
  if (source == SamplingSource::kCycles) return std::max<uint64_t>(hz, 1);
  return kNsPerSecond / std::max<uint64_t>(hz, 1);
}

SamplingProbe probe_sampling(const Kernel& kernel, uint64_t rate_hz, const std::string& call_graph,
                             bool may_use_timers) {
  SamplingEvent event;
  event.rate_hz = std::min(rate_hz, max_rate_hz(kernel));
  event.call_graph = call_graph_of(call_graph);
  SamplingProbe result;
  if (event.rate_hz < rate_hz) {
    result.obstacle = {"the kernel samples at most " + std::to_string(event.rate_hz) + " Hz",
                       "sysctl kernel.perf_event_max_sample_rate=" + std::to_string(rate_hz)};
  }
  const bool is_hybrid = has_hybrid_cores(kernel);
  event.source = is_hybrid ? SamplingSource::kCpuClock : SamplingSource::kCycles;
  if (is_hybrid) {
    result.obstacle = {"cycles are counted on performance cores only: the CPU clock is sampled",
                       ""};
  }
  int error = try_event(kernel, event);
  if (error != 0 && event.call_graph == CallGraph::kBranches) {
    event.call_graph = CallGraph::kFramePointers;
    error = try_event(kernel, event);
    if (!is_hybrid) {
      result.obstacle = {
          "this CPU has no branch records (LBR) of calls: frame pointers are followed",
          "--call-graph=fp"};
    }
  }
  if (error != 0 && !is_hybrid) {
    event.source = SamplingSource::kCpuClock;
    error = try_event(kernel, event);
  }
  if (error != 0 && event.call_graph == CallGraph::kStackCopies) {
    event.call_graph = CallGraph::kFramePointers;
    error = try_event(kernel, event);
    result.obstacle = {"the kernel copies no stacks here: frame pointers are followed",
                       "--call-graph=fp"};
  }
  if (error != 0) {
    result.obstacle = explain(error, false, kernel.paranoid_level());
    if (may_use_timers) {
      event.source = SamplingSource::kTimer;
      result.event = event;
      result.obstacle.reason += ": only threads that record events are sampled, by timers";
    } else {
      result.obstacle.remedy +=
          std::string(result.obstacle.remedy.empty() ? "" : " or ") + "--sampling-fallback=timer";
    }
    return result;
  }
  result.event = event;
  return result;
}

uint64_t sample_cost_ns(const Kernel& kernel) {
  return is_virtual_machine(kernel) ? kVirtualSampleNs : kSampleNs;
}

}  // namespace aon::perf
