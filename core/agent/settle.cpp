#include "core/agent/settle.h"

#include <filesystem>
#include <utility>

#include "core/base/containers.h"
#include "core/base/file.h"
#include "core/cluster/address.h"
#include "core/cluster/presence.h"

namespace aon::agent {
namespace {

constexpr int kMostAgents = 1024;  ///< of a launch on a node

/// Who sees the same /tmp as we do takes ranks no more: its lock there is ours now.
bool takes_ranks_beside_us(const std::string& lease) {
  const Result<std::string> text = read_text_file(lease, 4096);
  if (!text) return false;
  if (!text->starts_with(host_of_pids() + " ")) return true;
  const std::optional<LeaseOwner> owner = read_lease(lease);
  return owner && sees_other_mounts(owner->pid);
}

}  // namespace

std::optional<Lease> settle_node(Config* config) {
  if (!cluster::make_agents_folder(config->job_folder)) return std::nullopt;
  const std::string node = config->node;
  const std::filesystem::path spool = std::filesystem::path(config->folder).parent_path();
  for (int number = 1; number <= kMostAgents; ++number) {
    if (number > 1) config->node = node + "~" + std::to_string(number);
    config->folder = (spool / config->node).string();
    const std::string path = cluster::agent_lease(config->job_folder, config->node);
    Result<Lease> lease = Lease::take(path);
    if (lease) return std::move(*lease);
    if (lease.error().code != Code::kBusy || !takes_ranks_beside_us(path)) break;
  }
  return std::nullopt;
}

}  // namespace aon::agent
