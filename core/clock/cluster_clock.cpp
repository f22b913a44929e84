#include "core/clock/cluster_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "core/clock/correction.h"
#include "core/clock/knot_fit.h"

namespace aon::clock {
namespace {

constexpr uint64_t kMaxNs = uint64_t{1} << 61;  ///< the year 2043; keeps differences in range
constexpr double kMarginSeconds = 600;          ///< of exchanges around the job
constexpr double kUnreached = std::numeric_limits<double>::infinity();

uint64_t whole_ns(double ns) { return static_cast<uint64_t>(std::clamp(std::ceil(ns), 0.0, 1e18)); }

/// Whether two readings of a node's clock can be of this job.
bool are_of_job(const ClusterNode& node, uint64_t start_ticks, uint64_t end_ticks) {
  const auto margin = static_cast<uint64_t>(kMarginSeconds * node.map->ticks_per_second());
  const uint64_t first = node.first_ticks - std::min(node.first_ticks, margin);
  const uint64_t last = node.last_ticks + std::min(UINT64_MAX - node.last_ticks, margin);
  return first <= start_ticks && start_ticks <= end_ticks && end_ticks <= last;
}

/// An edge with its windows, as seen from `node`.
struct FittedEdge {
  uint32_t node;
  uint32_t peer;
  PingWindows pings;
  uint64_t dropped_count = 0;

  uint32_t other(uint32_t end) const { return end == node ? peer : node; }
  /// What unequal ways may do.
  double asymmetry_ns() const {
    const auto count = static_cast<double>(std::max<uint64_t>(pings.ping_count, 1));
    return pings.floor_ns * (kAsymmetry + kBusyAsymmetry * pings.delayed_share + 0.5 / count);
  }
  /// How good it is, to choose among edges.
  double cost_ns() const {
    std::vector<double> spreads;
    for (const PingWindow& window : pings.windows) spreads.push_back(pings.spread_ns(window));
    const auto middle = spreads.begin() + static_cast<ptrdiff_t>(spreads.size() / 2);
    std::nth_element(spreads.begin(), middle, spreads.end());
    return 1 + *middle + asymmetry_ns();
  }
  double worst_ns(const PingWindow& window) const {
    return kReadNs + window.width_ns / 2 + pings.drift_doubt * window.length_ns / 2;
  }
};

/// The nodes in the order in which they are reached from the reference over the best edges.
std::vector<uint32_t> order_of(uint32_t reference, const std::vector<FittedEdge>& edges,
                               const std::vector<std::vector<uint32_t>>& edges_of) {
  std::vector<double> cost_ns(edges_of.size(), kUnreached);
  std::vector<bool> is_done(edges_of.size(), false);
  std::vector<uint32_t> order;
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  cost_ns[reference] = 0;
  queue.push({0, reference});
  while (!queue.empty()) {
    const uint32_t node = queue.top().second;
    queue.pop();
    if (is_done[node]) continue;
    is_done[node] = true;
    order.push_back(node);
    for (const uint32_t e : edges_of[node]) {
      const uint32_t other = edges[e].other(node);
      const double sum_ns = cost_ns[node] + edges[e].cost_ns();
      if (sum_ns >= cost_ns[other]) continue;
      cost_ns[other] = sum_ns;
      queue.push({sum_ns, other});
    }
  }
  return order;
}

/// Fits one node after the other, in an order in which those it leans on are known.
class TreeFit {
 public:
  TreeFit(const std::vector<ClusterNode>& nodes, const std::vector<FittedEdge>& edges,
          const std::vector<std::vector<uint32_t>>& edges_of, ClusterClocks* result)
      : nodes_(nodes), edges_(edges), edges_of_(edges_of), result_(*result) {}

  void fit(uint32_t node);

 private:
  /// What some edges say of a node.
  struct Attempt {
    std::vector<uint32_t> edges;
    NodeClock clock;  ///< against the reference; not known where they do not tell
    uint64_t edge_error_ns = 0;
    uint64_t edge_worst_ns = 0;
  };

  Attempt attempt(uint32_t node, std::vector<uint32_t> edges) const;
  bool is_contradicted(uint32_t node, const Attempt& attempt,
                       const std::vector<uint32_t>& edges) const;
  void add_marks(uint32_t node, const FittedEdge& edge, std::vector<Mark>* marks) const;

  const std::vector<ClusterNode>& nodes_;
  const std::vector<FittedEdge>& edges_;
  const std::vector<std::vector<uint32_t>>& edges_of_;
  ClusterClocks& result_;
};

void TreeFit::add_marks(uint32_t node, const FittedEdge& edge, std::vector<Mark>* marks) const {
  const Correction correction(result_.nodes[edge.other(node)].knots);
  for (const PingWindow& window : edge.pings.windows) {
    const int64_t from_ns = edge.pings.origin_ns + std::llround(window.at_ns);
    const int64_t to_ns = from_ns + edge.pings.base_ns + std::llround(window.offset_ns);
    const int64_t own_ns = edge.node == node ? from_ns : to_ns;
    const int64_t other_ns = edge.node == node ? to_ns : from_ns;
    if (own_ns < 0 || other_ns < 0) continue;
    const __int128 reference_ns = correction.at(static_cast<uint64_t>(other_ns));
    if (reference_ns < 0 || reference_ns > __int128{kMaxNs}) continue;
    marks->push_back({own_ns, static_cast<int64_t>(reference_ns), edge.pings.spread_ns(window),
                      edge.worst_ns(window)});
  }
}

TreeFit::Attempt TreeFit::attempt(uint32_t node, std::vector<uint32_t> edges) const {
  const ClockMap& map = *nodes_[node].map;
  std::vector<Mark> marks;
  double asymmetry_ns = 0;
  double clocks_ns = 0;
  uint64_t path_ns = 0;
  uint64_t worst_path_ns = 0;
  for (const uint32_t e : edges) {
    const NodeClock& other = result_.nodes[edges_[e].other(node)];
    const uint64_t others_error_ns = nodes_[edges_[e].other(node)].map->max_error_ns();
    add_marks(node, edges_[e], &marks);
    asymmetry_ns = std::max(asymmetry_ns, edges_[e].asymmetry_ns());
    clocks_ns = std::max(clocks_ns, static_cast<double>(map.max_error_ns() + others_error_ns));
    path_ns = std::max(path_ns, other.error_ns);
    worst_path_ns = std::max(worst_path_ns, other.worst_case_ns);
  }
  Attempt result{std::move(edges), {}};
  if (marks.empty()) return result;
  const KnotFit fit(std::move(marks), map.to_ns(nodes_[node].first_ticks),
                    map.to_ns(nodes_[node].last_ticks));
  if (fit.knots().size() < 2) return result;
  result.edge_worst_ns = whole_ns(fit.worst_ns() + clocks_ns);
  result.edge_error_ns =
      std::min(whole_ns(fit.error_ns() + asymmetry_ns + clocks_ns), result.edge_worst_ns);
  NodeClock& clock = result.clock;
  clock.is_known = true;
  clock.error_ns = result.edge_error_ns + path_ns;
  clock.worst_case_ns = result.edge_worst_ns + worst_path_ns;
  clock.knots = fit.knots();
  clock.step_count = fit.step_count();
  const ClockKnot& first = clock.knots.front();
  const ClockKnot& last = clock.knots.back();
  clock.offset_ns = static_cast<int64_t>(first.reference_ns - first.own_ns);
  const auto run_ns = static_cast<double>(last.own_ns - first.own_ns);
  const auto rise_ns = static_cast<double>(last.reference_ns - first.reference_ns);
  clock.drift_ppb = std::llround((rise_ns - run_ns) / run_ns * 1e9);
  return result;
}

/// Whether a window of `edges` cannot be as the attempt has it: what it does not know of (a step,
/// another drift before it began) must not be left out for a smaller bound.
bool TreeFit::is_contradicted(uint32_t node, const Attempt& attempt,
                              const std::vector<uint32_t>& edges) const {
  const Correction correction(attempt.clock.knots);
  for (const uint32_t e : edges) {
    std::vector<Mark> marks;
    add_marks(node, edges_[e], &marks);
    const auto others_ns = static_cast<double>(result_.nodes[edges_[e].other(node)].error_ns);
    const double told_ns =
        static_cast<double>(attempt.clock.error_ns) + others_ns + edges_[e].asymmetry_ns();
    for (const Mark& mark : marks) {
      const auto at_ns = static_cast<uint64_t>(mark.own_ns);
      const auto off_ns = static_cast<double>(correction.at(at_ns) - mark.reference_ns);
      if (std::abs(off_ns) > told_ns + mark.spread_ns) return true;
    }
  }
  return false;
}

/// By the one edge that tells it best, or by all: one that was there for a part of the run only
/// fills a gap or adds its own doubt.
void TreeFit::fit(uint32_t node) {
  std::vector<uint32_t> known;
  for (const uint32_t e : edges_of_[node]) {
    if (result_.nodes[edges_[e].other(node)].is_known) known.push_back(e);
  }
  if (known.empty()) return;
  const auto cost_ns = [&](uint32_t e) {
    return static_cast<double>(result_.nodes[edges_[e].other(node)].error_ns) + edges_[e].cost_ns();
  };
  const uint32_t nearest = *std::min_element(
      known.begin(), known.end(), [&](uint32_t a, uint32_t b) { return cost_ns(a) < cost_ns(b); });
  Attempt best = attempt(node, {nearest});
  if (known.size() > 1) {
    Attempt all = attempt(node, std::move(known));
    const bool is_better = !best.clock.is_known || all.clock.error_ns < best.clock.error_ns;
    if (all.clock.is_known && (is_better || is_contradicted(node, best, all.edges)))
      best = std::move(all);
  }
  if (!best.clock.is_known) return;
  result_.nodes[node] = std::move(best.clock);
  for (const uint32_t e : best.edges) {
    ClockEdge& edge = result_.edges[e];
    if (edge.node != node) {
      std::swap(edge.node, edge.peer);
      edge.drift_ppb = -edge.drift_ppb;
    }
    edge.is_in_tree = true;
    edge.error_ns = best.edge_error_ns;
    edge.worst_case_ns = best.edge_worst_ns;
  }
}

}  // namespace

void ClusterClock::add(uint32_t node, uint32_t peer, const ClockPingDefinition& ping) {
  if (node >= nodes_.size() || peer >= nodes_.size() || node == peer) return;
  Edge& edge = edges_.try_emplace({node, peer}, *nodes_[node].map, *nodes_[peer].map).first->second;
  const uint64_t sent_ns = edge.own_clock.to_ns(ping.sent_ticks);
  const uint64_t received_ns = edge.own_clock.to_ns(ping.received_ticks);
  const uint64_t peer_received_ns = edge.peer_clock.to_ns(ping.peer_received_ticks);
  const uint64_t peer_sent_ns = edge.peer_clock.to_ns(ping.peer_sent_ticks);
  const bool is_in_order =
      are_of_job(nodes_[node], ping.sent_ticks, ping.received_ticks) &&
      are_of_job(nodes_[peer], ping.peer_received_ticks, ping.peer_sent_ticks) &&
      sent_ns <= received_ns && peer_received_ns <= peer_sent_ns && received_ns < kMaxNs &&
      peer_sent_ns < kMaxNs;
  if (!is_in_order || received_ns - sent_ns > kMaxRoundTripNs ||
      peer_sent_ns - peer_received_ns > received_ns - sent_ns) {
    ++edge.dropped_count;
    return;
  }
  const auto s = static_cast<int64_t>(sent_ns);
  const auto r = static_cast<int64_t>(received_ns);
  const auto ps = static_cast<int64_t>(peer_sent_ns);
  const auto pr = static_cast<int64_t>(peer_received_ns);
  edge.exchanges.push_back({r, ps - r, s, pr - s});
}

void ClusterClock::finish(uint32_t node) {
  for (auto at = edges_.lower_bound({node, 0}); at != edges_.end() && at->first.first == node;
       ++at) {
    Edge& edge = at->second;
    if (edge.exchanges.empty()) continue;
    edge.pings = find_windows(&edge.exchanges);
    edge.exchanges = std::vector<Exchange>();  // its memory too
  }
}

ClusterClocks ClusterClock::fit(uint32_t reference) {
  ClusterClocks result;
  result.nodes.resize(nodes_.size());
  std::vector<FittedEdge> edges;
  std::vector<std::vector<uint32_t>> edges_of(nodes_.size());
  for (uint32_t node = 0; node < nodes_.size(); ++node) finish(node);
  for (auto& [ends, edge] : edges_) {
    FittedEdge fitted{ends.first, ends.second, std::move(edge.pings), 0};
    fitted.dropped_count = edge.dropped_count + fitted.pings.dropped_count;
    result.edges.push_back({ends.first, ends.second, fitted.pings.ping_count, fitted.dropped_count,
                            0, 0, whole_ns(fitted.pings.floor_ns),
                            std::llround(fitted.pings.drift * 1e9), false});
    if (!fitted.pings.windows.empty()) {
      edges_of[ends.first].push_back(static_cast<uint32_t>(edges.size()));
      edges_of[ends.second].push_back(static_cast<uint32_t>(edges.size()));
    }
    edges.push_back(std::move(fitted));
  }
  if (reference >= nodes_.size()) return result;
  TreeFit tree(nodes_, edges, edges_of, &result);
  for (const uint32_t node : order_of(reference, edges, edges_of)) {
    if (node == reference) {
      result.nodes[node].is_known = true;
    } else {
      tree.fit(node);
    }
  }
  return result;
}

}  // namespace aon::clock
