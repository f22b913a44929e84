#include "core/agent/affinity.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace aon::agent::affinity {
namespace {

void apply_to_all_threads(const cpu_set_t& cores) noexcept {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* entry = ::readdir(tasks)) {
    const int tid = std::atoi(entry->d_name);
    if (tid > 0) ::sched_setaffinity(tid, sizeof(cores), &cores);
  }
  ::closedir(tasks);
}

}  // namespace

void reset() noexcept {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof(all));  // the kernel cuts it to what the cgroup allows
  ::sched_setaffinity(0, sizeof(all), &all);
}

void leave_cores(const cpu_set_t& cores) noexcept {
  cpu_set_t ours;
  if (::sched_getaffinity(0, sizeof(ours), &ours) != 0) return;
  cpu_set_t shared;
  CPU_AND(&shared, &ours, &cores);
  if (CPU_COUNT(&shared) == 0 || CPU_EQUAL(&shared, &ours)) return;
  CPU_XOR(&ours, &ours, &shared);
  apply_to_all_threads(ours);
}

}  // namespace aon::agent::affinity
