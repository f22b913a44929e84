#include "core/base/containers.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/lease.h"

namespace aon {
namespace {

/// PROC_PID_INIT_INO of include/linux/proc_ns.h.
constexpr char kFirstPidNamespace[] = "pid:[4026531836]";

std::string target_of(const std::string& link) {
  char text[64];
  const ssize_t bytes = readlink(link.c_str(), text, sizeof text);
  return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : std::string();
}

}  // namespace

std::string host_of_pids() {
  const std::string space = target_of("/proc/self/ns/pid");
  const size_t number = space.find('[');
  if (space == kFirstPidNamespace || number == std::string::npos) return local_host_name();
  return local_host_name() + "@" + space.substr(number + 1, space.find(']') - number - 1);
}

std::optional<bool> lives_beside_us(const std::string& host_of_pids, uint64_t start_time_ticks) {
  const std::string own = local_host_name() + "@";
  if (!host_of_pids.starts_with(own) || target_of("/proc/self/ns/pid") != kFirstPidNamespace)
    return std::nullopt;
  const std::string space = "pid:[" + host_of_pids.substr(own.size()) + "]";
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return std::nullopt;
  bool lives = false;
  bool is_hidden = false;
  while (const dirent* entry = readdir(processes)) {
    const int32_t pid = atoi(entry->d_name);
    if (pid <= 0 || process_start_time_ticks(pid) != start_time_ticks) continue;
    const std::string theirs = target_of("/proc/" + std::to_string(pid) + "/ns/pid");
    lives = lives || theirs == space;
    is_hidden = is_hidden || (theirs.empty() && process_start_time_ticks(pid) == start_time_ticks);
  }
  closedir(processes);
  if (!lives && is_hidden) return std::nullopt;
  return lives;
}

bool sees_other_mounts(int32_t pid) {
  const std::string theirs = target_of("/proc/" + std::to_string(pid) + "/ns/mnt");
  const std::string ours = target_of("/proc/self/ns/mnt");
  return !theirs.empty() && !ours.empty() && theirs != ours;
}

}  // namespace aon
