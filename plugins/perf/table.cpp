#include "perf/table.h"

#include <aon/perf_refusal.h>

#include <cerrno>
#include <cstring>

namespace aon::perf {
namespace {

constexpr uint32_t kSoftware = PERF_TYPE_SOFTWARE;
constexpr uint32_t kHardware = PERF_TYPE_HARDWARE;

constexpr EventType kEvents[] = {
    {"task-clock", "ns", "CPU time", kSoftware, PERF_COUNT_SW_TASK_CLOCK, false},
    {"page-faults", "1", "page faults", kSoftware, PERF_COUNT_SW_PAGE_FAULTS, false},
    {"minor-faults", "1", "page faults served from memory", kSoftware,
     PERF_COUNT_SW_PAGE_FAULTS_MIN, false},
    {"major-faults", "1", "page faults that waited for storage", kSoftware,
     PERF_COUNT_SW_PAGE_FAULTS_MAJ, false},
    {"context-switches", "1", "times a thread left its CPU", kSoftware,
     PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cpu-migrations", "1", "times a thread moved to another CPU", kSoftware,
     PERF_COUNT_SW_CPU_MIGRATIONS, true},
    {"cycles", "1", "CPU cycles", kHardware, PERF_COUNT_HW_CPU_CYCLES, false},
    {"instructions", "1", "instructions retired", kHardware, PERF_COUNT_HW_INSTRUCTIONS, false},
    {"cache-references", "1", "accesses to the last-level cache", kHardware,
     PERF_COUNT_HW_CACHE_REFERENCES, false},
    {"cache-misses", "1", "misses of the last-level cache", kHardware, PERF_COUNT_HW_CACHE_MISSES,
     false},
    {"branches", "1", "branches retired", kHardware, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {"branch-misses", "1", "branches mispredicted", kHardware, PERF_COUNT_HW_BRANCH_MISSES, false},
};

constexpr EventType kOnRequest[] = {
    {"cpu-clock", "ns", "CPU time, by the timer of the CPU", kSoftware, PERF_COUNT_SW_CPU_CLOCK,
     false},
    {"alignment-faults", "1", "unaligned accesses that the kernel served", kSoftware,
     PERF_COUNT_SW_ALIGNMENT_FAULTS, true},
    {"emulation-faults", "1", "instructions that the kernel did in place of the CPU", kSoftware,
     PERF_COUNT_SW_EMULATION_FAULTS, true},
};

}  // namespace

std::span<const EventType> event_types() { return kEvents; }

std::span<const EventType> event_types_on_request() { return kOnRequest; }

Obstacle explain(int error_number, bool hardware, int paranoid_level) {
  if (is_perf_absence(error_number) && !hardware) return {"this kernel does not count it", ""};
  const PerfRefusal refusal = perf_refusal(error_number, PerfReach::kUserMode);
  if (error_number == EACCES && paranoid_level > static_cast<int>(PerfReach::kUserMode))
    return {"kernel.perf_event_paranoid is " + std::to_string(paranoid_level), refusal.remedy};
  if (error_number == EACCES) {
    return {"this process may not be watched (other user, or not dumpable)",
            "start it with aon-run"};
  }
  if (*refusal.reason == '\0')
    return {std::string("perf_event_open: ") + strerror(error_number), ""};
  return {refusal.reason, refusal.remedy};
}

}  // namespace aon::perf
