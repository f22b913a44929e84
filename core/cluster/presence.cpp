#include "core/cluster/presence.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/cluster/address.h"

namespace aon::cluster {
namespace {

constexpr char kLease[] = ".lease";
constexpr char kDone[] = ".done";

std::string mark(const std::string& job_folder, const std::string& node, const char* kind) {
  return agents_folder(job_folder) + "/" + node + kind;
}

}  // namespace

std::string agent_lease(const std::string& job_folder, const std::string& node) {
  return mark(job_folder, node, kLease);
}

std::vector<NodePresence> read_presence(const std::string& job_folder) {
  std::map<std::string, NodePresence> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(agents_folder(job_folder), error)) {
    const std::filesystem::path name = entry.path().filename();
    const std::string node = name.stem().string();
    if (name.extension() == kDone) nodes[node] = {node, Presence::kDone, "", 0};
    if (name.extension() != kLease || nodes.count(node) != 0) continue;
    const std::optional<LeaseOwner> owner = read_lease(entry.path().string());
    if (!owner) continue;
    const Presence presence = owner->is_alive ? Presence::kLive : Presence::kLost;
    nodes[node] = {node, presence, owner->host, owner->pid};
  }
  std::vector<NodePresence> result;
  for (auto& [name, node] : nodes) result.push_back(std::move(node));
  return result;
}

void clear_done(const std::string& job_folder, const std::string& node) {
  unlink(mark(job_folder, node, kDone).c_str());
}

Status mark_done(const std::string& job_folder, const std::string& node) {
  auto file = open_file(mark(job_folder, node, kDone), O_WRONLY | O_CREAT | O_NOFOLLOW);
  if (!file) return file.error();
  return {};
}

bool is_done(const std::string& job_folder, const std::string& node) {
  return access(mark(job_folder, node, kDone).c_str(), F_OK) == 0;
}

void mark_assembled(const std::string& job_folder, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) clear_done(job_folder, node);
  rmdir(agents_folder(job_folder).c_str());
}

}  // namespace aon::cluster
