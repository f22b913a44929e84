#include "core/agent/finish.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "core/agent/timing.h"
#include "core/base/log.h"
#include "core/cluster/address.h"
#include "core/cluster/presence.h"

namespace aon::agent {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
/// Until a node that died counts as lost, and some more.
constexpr uint64_t kLeastWaitNs = (kLeaseDeadSeconds + 5) * kSecondNs;
constexpr uint64_t kLongestWaitNs = 3600 * kSecondNs;  ///< while somebody makes the archive
constexpr uint64_t kFirstPauseNs = 20'000'000;
constexpr uint64_t kLongestPauseNs = 4 * kSecondNs;
// All nodes look at one file system: each the more seldom, the more they are.
constexpr uint64_t kFirstPausePerNodeNs = 100'000;
constexpr uint64_t kLongestPausePerNodeNs = 4'000'000;  ///< between looks at others

/// Names this agent in its mark.
std::string own_token() {
  const auto pid = static_cast<int32_t>(::getpid());
  return local_host_name() + " " + std::to_string(pid) + " " +
         std::to_string(process_start_time_ticks(pid)) + cluster::kTakesShares;
}

/// The other nodes that still record, by name.
std::vector<std::string> live_others(const Config& config) {
  std::vector<std::string> names;
  for (const cluster::NodePresence& one : cluster::read_presence(config.job_folder)) {
    if (one.presence == cluster::Presence::kLive && one.node != config.node)
      names.push_back(one.node);
  }
  return names;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

/// Whether somebody makes the archive now.
bool is_assembling(const Config& config) {
  const std::optional<LeaseOwner> owner = read_lease(config.job_folder + "/assemble.lease");
  return owner && owner->is_alive;
}

/// The folder goes when another node's archive is complete, which may be just now.
Status leave_mark(const Config& config, const std::string& token) {
  Status status = cluster::mark_done(config.job_folder, config.node, token);
  if (status || status.error().code != Code::kNotFound) return status;
  status = cluster::make_agents_folder(config.job_folder);
  return status ? cluster::mark_done(config.job_folder, config.node, token) : status;
}

/// Its mark has gone.
AssembleOutcome outcome_of_others(const Config& config) {
  const std::string remedy = "run: aon finalize " + config.job_folder;
  switch (cluster::successor(config.job_folder, config.node)) {
    case cluster::Successor::kNone:
      return {true, ""};
    case cluster::Successor::kWorks:
      return {false, "the files will be in " + config.job_folder +
                         " when what runs now on this node has ended; if not, " + remedy};
    case cluster::Successor::kLost:
      break;
  }
  return {false, "what ran on this node after it has lost its agent: " + remedy};
}

/// Between looks at what the others do, which go on as long as it takes: any of them may be lost.
uint64_t pause_between_looks_ns(uint64_t waited_ns, size_t node_count) {
  const uint64_t first_ns = std::max(kFirstPauseNs, node_count * kFirstPausePerNodeNs);
  const uint64_t longest_ns = std::max(kLongestPauseNs, node_count * kLongestPausePerNodeNs);
  return std::clamp(waited_ns / 4, first_ns, longest_ns);
}

void pause(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / kSecondNs), static_cast<long>(ns % kSecondNs)};
  nanosleep(&time, nullptr);
}

/// Nobody is to count on this node's share any more.
AssembleOutcome give_up(const Config& config, const std::string& token) {
  if (!cluster::is_done(config.job_folder, config.node, token)) return outcome_of_others(config);
  static_cast<void>(leave_mark(config, token.substr(0, token.rfind(cluster::kTakesShares))));
  const std::vector<std::string> others = live_others(config);
  const std::string who = others.empty() ? "" : " when " + some_of(others) + " ended";
  return {false, "the files will be in " + config.job_folder + who +
                     "; if not, run: aon finalize " + config.job_folder};
}

}  // namespace

AssembleOutcome finish_launch(const Config& config, bool spans_nodes, Lease* lease,
                              const std::function<void()>& beat) {
  if (config.arguments.options.no_assemble) return assemble(config, beat, false);
  const std::string token = own_token();
  if (Status status = leave_mark(config, token); !status) {
    AON_LOG_WARNING("%s", status.error().message.c_str());
    return assemble(config, beat, false);
  }
  if (spans_nodes) lease->release();
  uint64_t last_plan = 0;
  cluster::LiveOthers others(config.job_folder, config.node);
  uint64_t next_look_ns = 0;
  const uint64_t start_ns = monotonic_ns();
  const uint64_t wait_ns =
      std::max<uint64_t>(config.arguments.options.wait_s * kSecondNs, kLeastWaitNs);
  for (;;) {
    if (!cluster::is_done(config.job_folder, config.node, token)) return outcome_of_others(config);
    if (is_share_wanted(config, &last_plan)) {
      do_share(config, beat,
               [&] { return !cluster::is_done(config.job_folder, config.node, token); });
      continue;  // the archive may be complete now
    }
    uint64_t waited_ns = monotonic_ns() - start_ns;
    if (waited_ns >= next_look_ns) {
      const bool is_left_to_others = others.are_any() || is_assembling(config);
      if (!is_left_to_others) {
        AssembleOutcome outcome = assemble(config, beat, true);
        if (!outcome.is_busy) return outcome;
        waited_ns = monotonic_ns() - start_ns;
      }
      next_look_ns = waited_ns + pause_between_looks_ns(waited_ns, others.node_count());
      if (waited_ns > wait_ns && (waited_ns > kLongestWaitNs || !is_assembling(config)))
        return give_up(config, token);
    }
    // What is asked of this node, a share, may not wait: others do it themselves soon.
    pause(std::min(pause_between_looks_ns(waited_ns, others.node_count()), kLongestPauseNs));
    beat();
  }
}

}  // namespace aon::agent
