#include "tools/live_job.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/lease.h"

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
  std::error_code ignored;
  for (const auto& node : std::filesystem::directory_iterator(dir + "/spool", ignored)) {
    if (auto owner = judge(node.path().string() + "/agent.lease", "agent", ignored_pid))
      return owner;
  }
  return judge(assemble_lease(dir), "finalize", ignored_pid);
}

std::string describe(const LiveOwner& owner) {
  if (owner.role == "agent")
    return fmt::format("the job is live: its agent is process {} on {}", owner.pid, owner.host);
  return fmt::format("process {} on {} is writing the archive", owner.pid, owner.host);
}

}  // namespace aon::tools
