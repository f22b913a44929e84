#include "writers/assemble/clocks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "writers/waits/clock_bounds.h"

namespace aon::writers {
namespace {

constexpr size_t kNamedNodes = 4;

clock::TickSource source_of(const spool::Node& node) {
  return static_cast<clock::TickSource>(node.definition.clock_is_tsc != 0);
}

/// Node by the name of its folder, which is what pings have.
std::map<std::string, uint32_t> nodes_by_folder(const spool::Job& job) {
  std::map<std::string, uint32_t> by_folder;
  for (uint32_t n = 0; n < job.nodes.size(); ++n) {
    by_folder[job.nodes[n].folder.filename().string()] = n;
  }
  return by_folder;
}

/// Which nodes take part in an exchange.
std::vector<bool> pinged_nodes(const spool::Job& job,
                               const std::map<std::string, uint32_t>& by_folder) {
  std::vector<bool> is_pinged(job.nodes.size(), false);
  for (uint32_t n = 0; n < job.nodes.size(); ++n) {
    for (const spool::ClockPing& ping : job.nodes[n].clock_pings) {
      const auto peer = by_folder.find(ping.peer);
      if (peer == by_folder.end() || peer->second == n) continue;
      is_pinged[n] = is_pinged[peer->second] = true;
    }
  }
  return is_pinged;
}

bool has_one_host(const spool::Job& job) {
  return std::all_of(job.nodes.begin(), job.nodes.end(),
                     [&](const spool::Node& node) { return node.host == job.nodes.front().host; });
}

/// That of rank 0, or the first one whose clock was compared with another's.
uint32_t choose_reference(const Model& model, const std::vector<bool>& is_pinged) {
  const bool has_rank =
      !model.groups.empty() && model.groups[0].rank == 0u && model.groups[0].process != nullptr;
  const uint32_t first = has_rank ? model.groups[0].node : 0;
  if (first < is_pinged.size() && is_pinged[first]) return first;
  const auto other = std::find(is_pinged.begin(), is_pinged.end(), true);
  return other == is_pinged.end() ? first : static_cast<uint32_t>(other - is_pinged.begin());
}

clock::ClusterClocks fit(const JobModel& parts, const std::map<std::string, uint32_t>& by_folder,
                         uint32_t reference) {
  std::vector<clock::ClusterNode> nodes;
  for (size_t n = 0; n < parts.job.nodes.size(); ++n) {
    const std::vector<ClockDefinition>& snapshots = parts.job.nodes[n].clock;
    nodes.push_back({&parts.clocks[n], snapshots.empty() ? 0 : snapshots.front().ticks,
                     snapshots.empty() ? 0 : snapshots.back().ticks});
  }
  clock::ClusterClock cluster(std::move(nodes));
  for (uint32_t n = 0; n < parts.job.nodes.size(); ++n) {
    for (const spool::ClockPing& ping : parts.job.nodes[n].clock_pings) {
      const auto peer = by_folder.find(ping.peer);
      if (peer != by_folder.end()) cluster.add(n, peer->second, ping.definition);
    }
    cluster.finish(n);
  }
  return cluster.fit(reference);
}

/// A spool without an agent (a ring that was left over) lies beside that of its node's agent: it is
/// the same clock, which the agent looked at each second, and the ring as its first chunks filled.
void lend_clocks(JobModel* parts) {
  const std::vector<spool::Node>& nodes = parts->job.nodes;
  Model& model = parts->model;
  std::map<std::pair<std::string, clock::TickSource>, size_t> known;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (model.cluster.nodes[n].is_known)
      known.emplace(std::pair(nodes[n].host, source_of(nodes[n])), n);
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (model.cluster.nodes[n].is_known) continue;
    const auto same = known.find({nodes[n].host, source_of(nodes[n])});
    if (same == known.end()) continue;
    const size_t other = same->second;
    model.clock_error_ns[n] =
        std::max(model.clock_error_ns[other], parts->clocks[n].max_error_ns());
    parts->clocks[n] = parts->clocks[other];
    model.cluster.nodes[n] = model.cluster.nodes[other];
    model.cluster.nodes[n].step_count = 0;  // told once
  }
}

/// `name`, `name` and 3 more.
std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamedNodes); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamedNodes) {
    text += " and " + std::to_string(names.size() - kNamedNodes) + " more";
  }
  return text;
}

std::string microseconds(uint64_t ns) {
  const std::string digits = std::to_string(ns % 1000 / 100);
  return std::to_string(ns / 1000) + "." + digits + " us";
}

/// Adds `more_ns` to the bound of `node` and of all that lean on it.
void raise(uint32_t node, uint64_t more_ns, Model* model) {
  std::vector<uint32_t> open = {node};
  std::vector<bool> is_raised(model->clock_error_ns.size(), false);
  while (!open.empty()) {
    const uint32_t one = open.back();
    open.pop_back();
    if (is_raised[one]) continue;
    is_raised[one] = true;
    model->clock_error_ns[one] += more_ns;
    for (const clock::ClockEdge& edge : model->cluster.edges) {
      if (edge.is_in_tree && edge.peer == one) open.push_back(edge.node);
    }
  }
}

/// Where REALTIME was set or a node suspended, each host once: its spools share a clock.
std::vector<std::string> settings_of_realtime(const JobModel& parts) {
  const std::vector<spool::Node>& nodes = parts.job.nodes;
  std::set<std::string> compared;
  for (const clock::ClockEdge& edge : parts.model.cluster.edges) {
    compared.insert(nodes[edge.node].host);
    compared.insert(nodes[edge.peer].host);
  }
  std::map<std::string, uint32_t> step_counts;
  for (size_t n = 0; n < nodes.size(); ++n) {
    uint32_t& most = step_counts[nodes[n].host];
    most = std::max(most, parts.clocks[n].step_count());
  }
  std::vector<std::string> left;  // hosts whose times go on
  std::vector<std::string> followed;
  for (const auto& [host, step_count] : step_counts) {
    if (step_count == 0) continue;
    const bool follows = step_counts.size() > 1 && compared.count(host) == 0;  // see build_clocks
    (follows ? followed : left).push_back(host);
  }
  std::vector<std::string> lines;
  const auto say = [&](const std::vector<std::string>& hosts, const std::string& what) {
    if (hosts.empty()) return;
    lines.push_back("clocks: REALTIME of " + list_of(hosts) +
                    " was set or slewed fast, or the node suspended (clock.nodes[].steps); " +
                    what + "; within a second of a suspension times are not exact");
  };
  say(left, "times go on as if it had not been");
  say(followed, "what lasted while it was set forward seems to have lasted longer");
  return lines;
}

}  // namespace

void build_clocks(JobModel* parts) {
  Model& model = parts->model;
  const std::vector<spool::Node>& nodes = parts->job.nodes;
  const std::map<std::string, uint32_t> by_folder = nodes_by_folder(parts->job);
  const std::vector<bool> is_pinged = pinged_nodes(parts->job, by_folder);
  model.reference_node = choose_reference(model, is_pinged);
  // REALTIME joins hosts that nobody compared. Any other it would only give times that are wrong.
  const bool is_alone = has_one_host(parts->job);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const auto realtime =
        is_pinged[n] || is_alone ? clock::Realtime::kStart : clock::Realtime::kFollow;
    parts->clocks.push_back(clock::ClockMap::fit(nodes[n].clock, source_of(nodes[n]), 0, realtime));
  }
  model.cluster = fit(*parts, by_folder, model.reference_node);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const clock::NodeClock& clock = model.cluster.nodes[n];
    const uint64_t own_ns = parts->clocks[n].max_error_ns();
    model.clock_error_ns.push_back(clock.is_known ? std::max(clock.error_ns, own_ns)
                                                  : kUnknownClockError);
    parts->clocks[n] = parts->clocks[n].corrected(clock.knots);
  }
  lend_clocks(parts);
}

std::vector<std::string> cover_violations(const ClockViolations& violations, Model* model) {
  std::vector<std::string> lines;
  for (const auto& [nodes, max_ns] : violations.by_nodes) {
    const auto [a, b] = nodes;
    const uint64_t bound_ns = ClockBounds(*model).between(a, b);
    if (max_ns <= bound_ns) continue;
    for (clock::ClockEdge& edge : model->cluster.edges) {
      const bool is_theirs = std::minmax(edge.node, edge.peer) == std::minmax(a, b);
      if (is_theirs && edge.is_in_tree) edge.error_ns = max_ns;
    }
    const uint32_t farther = model->clock_error_ns[a] > model->clock_error_ns[b] ? a : b;
    raise(farther, max_ns - bound_ns, model);
    lines.push_back("clocks: something on " + model->job->nodes[a].host + " and " +
                    model->job->nodes[b].host + " seems to end " + microseconds(max_ns) +
                    " before it began, more than the bound of " + microseconds(bound_ns) +
                    ": the ways between them are not equally long, or the messages were matched "
                    "wrongly; the bound was raised");
  }
  return lines;
}

std::vector<std::string> clock_remarks(const JobModel& parts) {
  const Model& model = parts.model;
  std::vector<std::string> lines = settings_of_realtime(parts);
  std::vector<std::string> unknown;
  const std::vector<spool::Node>& nodes = model.job->nodes;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (model.clock_error_ns[n] == kUnknownClockError) unknown.push_back(nodes[n].host);
    const uint32_t steps = model.cluster.nodes[n].step_count;
    if (steps == 0) continue;
    lines.push_back("clocks: that of " + nodes[n].host + " stepped " + std::to_string(steps) +
                    " times; events between the last exchange before a step and the first after it "
                    "are not within the bound");
  }
  if (!unknown.empty()) {
    lines.push_back("clocks: " + list_of(unknown) + (unknown.size() == 1 ? " was" : " were") +
                    " not compared with " + nodes[model.reference_node].host +
                    ": times between them are as good as the system's own synchronisation, error "
                    "unknown; with an output directory that all nodes share (-o) their agents "
                    "find each other");
  }
  return lines;
}

}  // namespace aon::writers
