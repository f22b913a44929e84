#include "core/cluster/presence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "core/base/file.h"
#include "core/cluster/address.h"

namespace aon::cluster {
namespace {

constexpr char kLease[] = ".lease";
constexpr char kDone[] = ".done";
constexpr char kNext[] = ".next";

std::string mark(const std::string& job_folder, const std::string& node, const char* kind) {
  return agents_folder(job_folder) + "/" + node + kind;
}

std::string read_token(const std::string& path) {
  const Result<std::string> text = read_text_file(path, 4096);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

/// Of agents that were killed while they waited: else the folder would stay for good.
void remove_dead_waits(const std::string& job_folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator at(agents_folder(job_folder), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == kNext) paths.push_back(at->path().string());
  }
  for (const std::string& path : paths) {
    const std::optional<LeaseOwner> owner = read_lease(path);
    // Taken, and released at once: of somebody who has just begun to wait it stays.
    if (owner && !owner->is_alive) static_cast<void>(Lease::take(path));
  }
}

}  // namespace

bool takes_shares(const NodePresence& node) { return node.token.ends_with(kTakesShares); }

bool is_same_agent(const std::string& one, const std::string& other) {
  const auto name = [](const std::string& token) {
    return token.ends_with(kTakesShares) ? token.substr(0, token.size() - strlen(kTakesShares))
                                         : token;
  };
  return name(one) == name(other);
}

std::string agent_lease(const std::string& job_folder, const std::string& node) {
  return mark(job_folder, node, kLease);
}

std::string waiting_lease(const std::string& job_folder, const std::string& node) {
  return mark(job_folder, node, kNext);
}

bool is_lease_awaited(const std::string& job_folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator at(agents_folder(job_folder), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().extension() != kNext) continue;
    const std::optional<LeaseOwner> owner = read_lease(at->path().string());
    if (owner && owner->is_alive) return true;
  }
  return false;
}

std::vector<NodePresence> read_presence(const std::string& job_folder) {
  namespace fs = std::filesystem;
  std::map<std::string, NodePresence> nodes;
  LeaseClock clock;
  std::error_code error;
  // The folder may go while it is read; ++ would throw then.
  fs::directory_iterator at(agents_folder(job_folder), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const fs::path name = at->path().filename();
    const std::string node = name.stem().string();
    if (name.extension() == kDone)
      nodes[node] = {node, Presence::kDone, read_token(at->path().string()), "", 0};
    if (name.extension() != kLease || nodes.count(node) != 0) continue;
    const std::optional<LeaseOwner> owner = read_lease(at->path().string(), &clock);
    if (!owner) {  // it became done while its name was read
      const std::string token = read_token(mark(job_folder, node, kDone));
      if (!token.empty()) nodes[node] = {node, Presence::kDone, token, "", 0};
      continue;
    }
    const Presence presence = owner->is_alive ? Presence::kLive : Presence::kLost;
    nodes[node] = {node, presence, "", owner->host, owner->pid, owner->note};
  }
  std::vector<NodePresence> result;
  for (auto& [name, node] : nodes) result.push_back(std::move(node));
  return result;
}

bool LiveOthers::lives(const std::string& node, LeaseClock* clock) const {
  if (access(mark(job_folder_, node, kDone).c_str(), F_OK) == 0) return false;
  const std::optional<LeaseOwner> owner = read_lease(agent_lease(job_folder_, node), clock);
  return owner && owner->is_alive;
}

/// Each node begins behind its own name: thousands do not wait for the same one.
bool LiveOthers::are_any() {
  namespace fs = std::filesystem;
  LeaseClock clock;
  if (!live_.empty() && lives(live_, &clock)) return true;
  std::map<std::string, bool> is_done;
  std::error_code error;
  fs::directory_iterator at(agents_folder(job_folder_), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const fs::path name = at->path().filename();
    if (name.extension() == kDone) is_done[name.stem().string()] = true;
    if (name.extension() == kLease) is_done.try_emplace(name.stem().string(), false);
  }
  node_count_ = std::max(node_count_, is_done.size());
  std::vector<std::string> names;
  for (const auto& [name, done] : is_done) {
    if (!done && name != node_) names.push_back(name);
  }
  std::rotate(names.begin(), std::upper_bound(names.begin(), names.end(), node_), names.end());
  const auto live = std::find_if(names.begin(), names.end(),
                                 [&](const std::string& name) { return lives(name, &clock); });
  live_ = live != names.end() ? *live : "";
  return !live_.empty();
}

void clear_done(const std::string& job_folder, const std::string& node) {
  unlink(mark(job_folder, node, kDone).c_str());
}

/// Written beside and renamed: a mark is never seen without its token.
Status mark_done(const std::string& job_folder, const std::string& node, const std::string& token) {
  const std::string path = mark(job_folder, node, kDone);
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  auto file = open_file(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!file) return file.error();
  const std::string line = token + "\n";
  Status status = write_all(file->get(), line.data(), line.size());
  if (status && rename(fresh.c_str(), path.c_str()) != 0)
    status = errno_error("cannot write", path, errno);
  if (!status) unlink(fresh.c_str());  // the folder goes when nothing is in it
  return status;
}

bool is_done(const std::string& job_folder, const std::string& node, const std::string& token) {
  const std::string path = mark(job_folder, node, kDone);
  const Result<UniqueFd> file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return file.error().code != Code::kNotFound;
  return is_same_agent(read_token(path), token);
}

Successor successor(const std::string& job_folder, const std::string& node) {
  if (access(mark(job_folder, node, kDone).c_str(), F_OK) == 0) return Successor::kWorks;
  const std::optional<LeaseOwner> owner = read_lease(agent_lease(job_folder, node));
  if (!owner) return Successor::kNone;
  const bool is_own = owner->pid == getpid() && owner->host == local_host_name() &&
                      owner->start_time_ticks == process_start_time_ticks(owner->pid);
  if (is_own) return Successor::kNone;
  return owner->is_alive ? Successor::kWorks : Successor::kLost;
}

void mark_assembled(const std::string& job_folder, const std::vector<NodePresence>& nodes) {
  for (const NodePresence& node : nodes) {
    if (node.presence == Presence::kDone && is_done(job_folder, node.node, node.token))
      clear_done(job_folder, node.node);
  }
  remove_dead_waits(job_folder);
  rmdir(agents_folder(job_folder).c_str());
}

}  // namespace aon::cluster
