#include "core/runtime/counter_source.h"

#include <aon/perf_refusal.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace aon::runtime {
extern "C" {
/// Of test programs alone.
[[gnu::weak]] AON_EXPORT const CounterSource* aon_counter_source();
}

namespace {

constexpr size_t kPageBytes = 4096;

int open_event(perf_event_attr* attr, int group) {
  const long fd = syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

const perf_event_mmap_page* map_page(int fd) {
  void* page = mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, fd, 0);
  return page == MAP_FAILED ? nullptr : static_cast<const perf_event_mmap_page*>(page);
}

void unmap_page(const perf_event_mmap_page* page) {
  munmap(const_cast<perf_event_mmap_page*>(page), kPageBytes);
}

void close_event(int fd) { close(fd); }

constexpr CounterSource kKernel = {open_event, map_page, unmap_page, close_event, nullptr};

}  // namespace

const CounterSource& counter_source() {
  static_assert(sizeof kKernel != 0);
  if (aon_counter_source != nullptr) return *aon_counter_source();
  return kKernel;
}

CounterProblem explain_counters(int error_number) {
  switch (error_number) {
    case kNotAllowed:
      return {"no PMU lets programs read it (rdpmc)",
              "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc"};
    case kGroupTooLarge:
      return {"the PMU cannot count these events together", "fewer events in --events"};
    case kNoLockedMemory:
      return {"no locked memory left for counters", "sysctl kernel.perf_event_mlock_kb=4096"};
    default:
      break;
  }
  const PerfRefusal refusal = perf_refusal(error_number, PerfReach::kUserMode);
  if (*refusal.reason == '\0') return {"perf_event_open or its page failed", "see aon doctor"};
  return {refusal.reason, refusal.remedy};
}

}  // namespace aon::runtime
