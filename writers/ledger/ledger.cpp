#include "writers/ledger/ledger.h"

#include <fcntl.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/base/file.h"
#include "core/base/time.h"
#include "core/spool/format.h"
#include "writers/ledger/findings.h"
#include "writers/ledger/ledger_clock.h"
#include "writers/ledger/ledger_nccl.h"
#include "writers/ledger/ledger_ranks.h"
#include "writers/ledger/ledger_steps.h"
#include "writers/ledger/sampling.h"
#include "writers/profile/beside_ranks.h"

namespace aon::writers {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLedgerFormat = 1;
constexpr double kNsPerSecond = 1e9;
constexpr size_t kIndentedRanks = 64;  ///< more ranks than this: no white space in the file

const char* const kOverheadMethod =
    "(records of each kind, counted calls, samples, and context switches and page faults of what "
    "the kernel watches, each times its cost + CPU time of the agents) / CPU time of the ranks";

/// False: what it did last is not known.
bool has_seen_end(const Group& group) {
  const spool::Process* process = group.process;
  if (process == nullptr || !process->exit) return false;
  // Without an agent the end is only that of its records; a rank may have told MPI_Finalize.
  return group.rank || process->start.fallback == 0 || process->exit->exit_code >= 0 ||
         process->exit->signal != 0;
}

/// A shell or driver that was followed above the ranks and then killed: nothing of the job is
/// missing for it, as where it had used too little CPU time to be followed.
bool is_killed_beside_ranks(const Model& model, const Group& group) {
  return has_seen_end(group) && group.process->exit->signal != 0 &&
         profile::is_beside_ranks(model, group);
}

/// The incomplete ranks and processes of a job, and a sentence about the first of them.
class Incomplete {
 public:
  explicit Incomplete(const LedgerFacts& facts) {
    for (const auto& [node, refusal] : facts.lost_nodes)
      say(refusal.empty() ? "node " + node + " was lost: it died or hung, or its agent was killed"
                          : "the spool of node " + node + " is still there: " + refusal +
                                "; aon finalize joins the directories");
    const std::set<ledger::Identity> with_file = ledger::with_file_of_their_own(*facts.model);
    for (const Group& group : facts.model->groups) {
      // What a late agent saw of the end is told of the process that wrote a file.
      const bool is_own =
          group.rank || group.process == nullptr || group.process->start.fallback != 0;
      if (!is_own && with_file.count(ledger::identity_of(*facts.model, group)) != 0) continue;
      if (is_killed_beside_ranks(*facts.model, group)) continue;
      const std::string reason = why_incomplete(group);
      if (!reason.empty()) add(*facts.model, group, reason);
      unseen_end_count += has_seen_end(group) ? 0 : 1;
    }
    if (facts.model->job->has_damaged_definitions)
      say("the definitions in its spool are damaged: names, processes and ends may be missing");
    else if (facts.model->job->damaged_blocks != 0)
      say("the definitions in its spool are cut off: what was told last may be missing");
    if (facts.missing_node_count != 0)
      say(std::to_string(facts.missing_node_count) + " nodes without their spool");
    if (facts.is_snapshot) say("a snapshot of a live job");
  }

  bool is_empty() const { return count_ == 0; }
  Json ranks = Json::array();
  Json processes = Json::array();
  uint64_t unseen_end_count = 0;
  std::string reason() const {
    if (count_ <= kToldReasons) return text_;
    return text_ + "; and " + std::to_string(count_ - kToldReasons) + " more";
  }

 private:
  static constexpr size_t kToldReasons = 8;

  void add(const Model& model, const Group& group, const std::string& reason) {
    if (group.rank) {
      ranks.push_back(*group.rank);
      say("rank " + std::to_string(*group.rank) + ": " + reason);
      return;
    }
    const int32_t pid = group.process == nullptr ? 0 : group.process->start.pid;
    const std::string& node = model.job->nodes[group.node].host;
    processes.push_back({{"node", node}, {"pid", pid}, {"reason", reason}});
    say("process " + std::to_string(pid) + " on " + node + ": " + reason);
  }
  void say(const std::string& text) {
    if (++count_ > kToldReasons) return;
    text_ += (text_.empty() ? "" : "; ") + text;
  }

  size_t count_ = 0;
  std::string text_;
};

Json time_json(uint64_t time_ns) { return time_ns == 0 ? Json() : Json(iso_time(time_ns)); }

Json job_json(const LedgerFacts& facts) {
  Incomplete incomplete(facts);
  const std::vector<spool::Node>& nodes = facts.model->job->nodes;
  Json job;
  job["id"] = nodes.empty() ? std::string() : nodes.front().launch_id;
  job["start"] = time_json(facts.model->start_ns);
  job["end"] = time_json(facts.model->end_ns);
  job["complete"] = incomplete.is_empty();
  if (!incomplete.is_empty()) job["reason"] = incomplete.reason();
  job["incomplete_ranks"] = std::move(incomplete.ranks);
  job["incomplete_processes"] = std::move(incomplete.processes);
  if (incomplete.unseen_end_count != 0) job["unseen_ends"] = incomplete.unseen_end_count;
  for (const auto& [node, refusal] : facts.lost_nodes) {
    job["lost_nodes"].push_back(node);
    if (!refusal.empty()) job["refused_nodes"][node] = refusal;
  }
  if (facts.is_snapshot) job["snapshot"] = true;
  return job;
}

Json losses_json(const LedgerFacts& facts, bool of_threads) {
  Json losses = Json::array();
  for (const LocationTally& tally : facts.tallies) {
    if (is_thread_of_process(*tally.location) != of_threads) continue;
    const Group& group = facts.model->groups[tally.location->group];
    for (uint32_t reason = 0; reason < kLossReasonCount; ++reason) {
      const LossTally& loss = tally.lost[reason];
      if (loss.count == 0) continue;
      losses.push_back({{"rank", group.rank ? Json(*group.rank) : Json()},
                        {"location", tally.location->id},
                        {"reason", loss_reason_name(static_cast<LossReason>(reason))},
                        {"count", loss.count},
                        {"start_ns", loss.start_ns},
                        {"end_ns", loss.end_ns}});
    }
  }
  return losses;
}

UsageDefinition usage_sum(const spool::Job& job) {
  UsageDefinition sum{};
  for (const spool::Node& node : job.nodes) {
    if (!node.usage) continue;
    sum.agent_cpu_ns += node.usage->agent_cpu_ns;
    sum.ranks_cpu_ns += node.usage->ranks_cpu_ns;
    sum.application_cost_ns += node.usage->application_cost_ns;
    sum.segment_bytes += node.usage->segment_bytes;
    sum.staging_bytes += node.usage->staging_bytes;
    sum.agent_resident_bytes += node.usage->agent_resident_bytes;
  }
  return sum;
}

/// CPU time of the processes as their ends were seen; the agents' last reading may be older. One
/// that calls exec(), or to which an agent answered too late, is several groups, each with the time
/// of all: it is in the sum once.
uint64_t ranks_cpu_ns(const LedgerFacts& facts, const UsageDefinition& usage) {
  std::map<ledger::Identity, uint64_t> longest;
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr || !group.process->exit) continue;
    uint64_t& cpu_ns = longest[ledger::identity_of(*facts.model, group)];
    cpu_ns = std::max(cpu_ns, group.process->exit->cpu_time_ns);
  }
  uint64_t sum = 0;
  for (const auto& [identity, cpu_ns] : longest) sum += cpu_ns;
  return std::max(sum, usage.ranks_cpu_ns);
}

/// Why there is no overhead to state; empty when there is.
std::string why_not_measured(const LedgerFacts& facts, uint64_t ranks_ns) {
  if (facts.model->groups.empty()) return "no process was recorded";
  const std::vector<spool::Node>& nodes = facts.model->job->nodes;
  const bool has_usage = std::any_of(
      nodes.begin(), nodes.end(), [](const spool::Node& node) { return node.usage.has_value(); });
  if (!has_usage) return "no agent measured it";
  return ranks_ns == 0 ? "no CPU time of the ranks was read" : "";
}

Json overhead_json(const LedgerFacts& facts) {
  const UsageDefinition usage = usage_sum(*facts.model->job);
  const uint64_t ranks_ns = ranks_cpu_ns(facts, usage);
  const std::string reason = why_not_measured(facts, ranks_ns);
  const double cost_ns = static_cast<double>(usage.application_cost_ns + usage.agent_cpu_ns);
  const auto known_ns = static_cast<double>(ranks_ns);
  Json overhead;
  overhead["percent"] = reason.empty() ? Json(100.0 * cost_ns / known_ns) : Json();
  if (!reason.empty()) overhead["reason"] = reason;
  overhead["app_cpu_s"] = static_cast<double>(usage.application_cost_ns) / kNsPerSecond;
  overhead["agent_cpu_s"] = static_cast<double>(usage.agent_cpu_ns) / kNsPerSecond;
  overhead["ranks_cpu_s"] = ranks_ns == 0 ? Json() : Json(known_ns / kNsPerSecond);
  overhead["method"] = kOverheadMethod;
  return overhead;
}

Json budget_json(const LedgerFacts& facts) {
  const UsageDefinition usage = usage_sum(*facts.model->job);
  uint64_t millipercent = 0;
  uint64_t disk_bytes = 0;
  size_t change_count = 0;
  for (const spool::Node& node : facts.model->job->nodes) {
    millipercent = std::max(millipercent, node.definition.budget_millipercent);
    disk_bytes += node.definition.disk_cap_bytes;
    change_count += node.budget_changes.size();
    for (const auto& [number, process] : node.processes) {
      change_count += ledger::count_mode_changes(process);
    }
  }
  // Without an agent nobody held one.
  const Json percent =
      millipercent == 0 ? Json() : Json(static_cast<double>(millipercent) / 1000.0);
  return {{"percent", percent},
          {"memory_bytes", usage.segment_bytes + usage.staging_bytes},
          {"agent_resident_bytes", usage.agent_resident_bytes},
          {"disk_bytes", disk_bytes},
          {"disk_used_bytes", facts.disk_used_bytes},
          {"mode_changes", change_count},
          {"nccl_level_changes", ledger::nccl_level_changes_json(facts)},
          {"nccl_levels_asked", ledger::nccl_levels_asked_json(facts)}};
}

/// Joules of all nodes that told them; null with the reason of a node where none did. A node whose
/// containers had an agent each told them several times: that of the longest counts.
Json energy_json(const LedgerFacts& facts) {
  std::map<std::string, const NodeEnergy*> by_host;
  if (facts.totals != nullptr) {
    for (size_t n = 0; n < facts.totals->energy.size(); ++n) {
      const NodeEnergy& energy = facts.totals->energy[n];
      if (!energy.is_known()) continue;
      const NodeEnergy*& longest = by_host[facts.model->job->nodes[n].host];
      if (longest == nullptr || energy.seconds() > longest->seconds()) longest = &energy;
    }
  }
  if (!by_host.empty()) {
    double sum_j = 0;
    double longest_s = 0;
    size_t platform_count = 0;
    for (const auto& [host, energy] : by_host) {
      sum_j += energy->joules();
      platform_count += energy->is_of_platform() ? 1 : 0;
      longest_s = std::max(longest_s, energy->seconds());
    }
    const std::string what = platform_count == 0               ? "packages and memory"
                             : platform_count < by_host.size() ? "packages and memory, or platform,"
                                                               : "platform";
    return {{"joules", sum_j},
            {"seconds", longest_s},
            {"nodes", by_host.size()},
            {"covers", what + " of the nodes, other jobs on them included"}};
  }
  std::string reason = "not recorded";
  for (const spool::Node& node : facts.model->job->nodes) {
    const auto provider = node.providers.find("energy");
    if (provider == node.providers.end() || provider->second.reason.empty()) continue;
    reason = provider->second.reason;
    break;
  }
  return {{"joules", nullptr}, {"reason", reason}};
}

/// Seconds of all threads by kind, and what could not be told.
Json waits_json(const WaitSummary* waits) {
  if (waits == nullptr) return nullptr;
  double by_kind_s[kWaitKindCount] = {};
  double polled_s = 0;
  for (const WaitRow& row : waits->rows) {
    double& sum_s = row.is_polled ? polled_s : by_kind_s[static_cast<size_t>(row.kind)];
    sum_s += static_cast<double>(row.wait_ns) * 1e-9;
  }
  Json by_kind = Json::object();
  for (size_t kind = 0; kind < kWaitKindCount; ++kind) {
    by_kind[wait_kind_name(static_cast<WaitKind>(kind))] = by_kind_s[kind];
  }
  return {{"seconds", by_kind},
          {"polled_seconds_at_most", polled_s},
          {"messages", waits->message_count},
          {"message_ends_left_out", waits->unmatched_count},
          {"collectives", waits->collective_count},
          {"collectives_left_out", waits->incomplete_count},
          {"left_out_because", hole_texts(waits->holes)}};
}

Json assembly_json(const LedgerFacts& facts) {
  uint64_t damaged_blocks = facts.model->job->damaged_blocks;
  uint64_t left_out = 0;
  for (const LocationTally& tally : facts.tallies) {
    damaged_blocks += tally.damaged_blocks;
    const bool is_wanted = tally.location->type != LocationType::kSamples;
    left_out += is_wanted && !tally.location->in_archive ? 1 : 0;
  }
  return {{"events", facts.outcome.event_count},
          {"clamped_times", facts.outcome.clamped_count},
          {"open_regions", facts.outcome.open_region_count},
          {"open_calls", facts.outcome.open_call_count},
          {"unmatched", facts.outcome.unmatched_count},
          {"unbalanced_regions", facts.outcome.unbalanced_region_count},
          {"cut_regions", facts.outcome.cut_region_count},
          {"open_transfers", facts.outcome.open_transfer_count},
          {"open_io", facts.outcome.open_io_count},
          {"unmatched_io", facts.outcome.unmatched_io_count},
          {"device_overlaps", facts.outcome.device_overlap_count},
          {"device_work_without_stream", facts.outcome.unplaced_device_count},
          {"nccl_launches_not_in_archive", facts.outcome.uncounted_launch_count},
          {"pauses", facts.outcome.pause_count},
          {"communication_complete", facts.outcome.communication_complete},
          {"damaged_blocks", damaged_blocks},
          {"locations_not_in_archive", left_out},
          {"seconds", facts.assembly_seconds},
          {"shares", facts.share_count},
          {"shares_replaced", facts.replaced_count},
          {"left_out_of_tables", facts.left_out},
          {"metrics_left_out", facts.left_out_metrics},
          {"markers", facts.marker_count},
          {"markers_left_out", facts.left_out_markers},
          {"failed", facts.failures},
          {"warnings", facts.warnings}};
}

}  // namespace

std::string why_incomplete(const Group& group) {
  if (group.process == nullptr) return "nothing was recorded";
  const spool::Process& process = *group.process;
  if (!has_seen_end(group)) return "its end was not seen";
  if (process.exit->signal != 0) return "killed by signal " + std::to_string(process.exit->signal);
  const bool is_unfinished = process.identity && process.identity->complete == 0;
  return group.rank && is_unfinished ? "MPI_Finalize was not reached" : "";
}

Status write_ledger(const std::filesystem::path& path, const LedgerFacts& facts) {
  Json ledger;
  ledger["aon"] = {{"version", AON_VERSION}, {"format", kLedgerFormat}};
  ledger["job"] = job_json(facts);
  ledger["findings"] = facts.findings;
  ledger["ranks"] = ledger::ranks_json(facts);
  ledger["losses"] = losses_json(facts, true);
  ledger["lost_samples"] = losses_json(facts, false);
  ledger["counted"] = ledger::counted_json(facts);
  ledger["overhead"] = overhead_json(facts);
  ledger["budget"] = budget_json(facts);
  ledger["clock"] = ledger::clock_json(facts);
  ledger["energy"] = energy_json(facts);
  ledger["nodes"] = ledger::nodes_json(facts);
  ledger["waits"] = waits_json(facts.waits);
  ledger["sampling"] = ledger::sampling_json(*facts.model, facts.tallies, facts.functions);
  ledger["assembly"] = assembly_json(facts);
  ledger["steps"] = ledger::steps_json(facts);
  ledger["hangs"] = facts.hangs;
  const bool is_indented = facts.model->groups.size() <= kIndentedRanks;
  const std::string text =
      ledger.dump(is_indented ? 1 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
  Result<UniqueFd> fd = open_file(path.string(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!fd) return fd.error();
  return write_all(fd->get(), text.data(), text.size());
}

}  // namespace aon::writers
