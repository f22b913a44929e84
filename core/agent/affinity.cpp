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

/// What the cgroup allows, and which of it ranks are bound to.
struct Cores {
  cpu_set_t allowed;
  cpu_set_t taken;
  int allowed_count;
};

Cores& cores_of_agent() noexcept {
  static Cores cores{};
  return cores;
}

}  // namespace

uint32_t count_cpus(const std::string& list) noexcept {
  uint32_t count = 0;
  for (const char* at = list.c_str(); *at != '\0';) {
    char* end = nullptr;
    const unsigned long first = std::strtoul(at, &end, 10);
    if (end == at) break;
    const bool is_range = *end == '-';
    at = is_range ? end + 1 : end;
    const unsigned long last = is_range ? std::strtoul(at, &end, 10) : first;
    if ((is_range && end == at) || last < first || last >= CPU_SETSIZE) break;
    count += static_cast<uint32_t>(last - first + 1);
    if (*end != ',') return count;
    at = end + 1;
  }
  return static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
}

void reset() noexcept {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof(all));  // the kernel cuts it to what the cgroup allows
  ::sched_setaffinity(0, sizeof(all), &all);
}

void leave_cores(const cpu_set_t& cores) noexcept {
  Cores& known = cores_of_agent();
  if (known.allowed_count == 0) {
    if (::sched_getaffinity(0, sizeof(known.allowed), &known.allowed) != 0) return;
    known.allowed_count = CPU_COUNT(&known.allowed);
  }
  cpu_set_t shared;
  CPU_AND(&shared, &known.allowed, &cores);
  if (CPU_EQUAL(&shared, &known.allowed)) return;  // not bound
  CPU_OR(&known.taken, &known.taken, &shared);
  cpu_set_t left;
  CPU_AND(&shared, &known.allowed, &known.taken);
  CPU_XOR(&left, &known.allowed, &shared);
  // With a rank on every core the scheduler finds the least busy one.
  apply_to_all_threads(CPU_COUNT(&left) != 0 ? left : known.allowed);
}

void leave_cores_of(pid_t pid) noexcept {
  cpu_set_t bound;
  if (::sched_getaffinity(pid, sizeof(bound), &bound) == 0) leave_cores(bound);
}

}  // namespace aon::agent::affinity
