#include "tools/live_job.h"

#include <fmt/format.h>

#include "core/base/lease.h"
#include "core/cluster/presence.h"

namespace aon::tools {
namespace {

std::optional<LiveOwner> judge(const std::string& path, const char* role, int32_t ignored_pid) {
  const std::optional<LeaseOwner> owner = read_lease(path);
  if (!owner || !owner->is_alive) return std::nullopt;
  if (owner->pid == ignored_pid && owner->host == local_host_name()) return std::nullopt;
  return LiveOwner{role, owner->host, owner->pid};
}

}  // namespace

std::string assemble_lease(const std::string& dir) { return dir + "/assemble.lease"; }

std::optional<LiveOwner> find_live_owner(const std::string& dir, int32_t ignored_pid) {
  for (const cluster::NodePresence& node : cluster::read_presence(dir)) {
    if (node.presence != cluster::Presence::kLive) continue;
    if (node.pid == ignored_pid && node.host == local_host_name()) continue;
    return LiveOwner{"agent", node.host, node.pid};
  }
  return judge(assemble_lease(dir), "finalize", ignored_pid);
}

std::string describe(const LiveOwner& owner) {
  if (owner.role == "agent")
    return fmt::format("the job is live: its agent is process {} on {}", owner.pid, owner.host);
  return fmt::format("process {} on {} is writing the archive", owner.pid, owner.host);
}

}  // namespace aon::tools
