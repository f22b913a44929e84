/// The clocks of a job's nodes -> one time. From every node's own clock (ClockMap) and the raw
/// exchanges between the nodes' agents it finds, for each node, a continuous, increasing, piecewise
/// linear correction to the time of the reference node, and says how far it may be off.
///
///     ticks --ClockMap--> own ns --correction (ClockKnot)--> reference ns
///
/// The tree. Nodes are joined to the reference over the edges with the smallest errors (Dijkstra).
/// A node's knots come from its windows (ping_windows.h) with the node next to it, or all nodes
/// before it where that narrows the bound or they contradict (its parent may change in mid-run).
///
/// The knots. A window stands for a knot unless a better one near by says more: clocks may wander
/// by kWander between them. Between knots the offset is a straight line; before the first and
/// behind the last it goes on with the slope of the pair that tells it best. A window that leaves
/// the line by more than kStepDrift and comes back is left out; a line that leaves it for good is a
/// step of a clock, and counted.
///
/// The bound (`error_ns`) is a sum. Of one edge:
///   spread      half of what the window's two shortest ways exceed the shortest ever seen (the
///               floor) and half of how dense that floor is (the third best): delays, hard limits
///   asymmetry   kAsymmetry of the floor, more with few pings: the two ways of a path that nothing
///               delays are assumed to differ by no more than twice that. Pings cannot see it.
///               kBusyAsymmetry more where many of them are delayed: on busy processors the one end
///               wakes up later than the other even at its best (tests/cluster/clocks_test.py)
///   bend        a quarter of how far a knot is from the line of its neighbours (the remainder of a
///               linear interpolation), and twice what their spreads do not explain of it
///   wander      before the first and behind the last knot: the doubt of the slope, and of its
///               change as the knots show it (at least 1 ppb in a second)
///   clocks      the error of both nodes' own clocks (ClockMap::max_error_ns)
/// Of a node: that, and the bound of the node that its knots come from: errors add up along
/// the path. Steps are no part of it: while a clock steps its times are not known better than the
/// step is long. `worst_case_ns` assumes nothing of the ways: half of the windows' widths (round
/// trips) instead of spread and asymmetry. The bound is never above it.
///
/// Assumes bursts of pings back to back, so that the floor is met on both ways: with pauses between
/// them the ways are unequally long (a waking receiver), which only `worst_case_ns` covers.
/// Untrusted input: exchanges that end before they begin, last longer than kMaxRoundTripNs, lie
/// outside of the job or contradict the others are left out and counted.
/// Thread: one.   Cost: about 0.5 us per exchange; memory for the exchanges of one node, and
/// 56 bytes per window.
#pragma once

#include <aon/definition.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/clock/clock_map.h"
#include "core/clock/ping_windows.h"

namespace aon::clock {

constexpr double kAsymmetry = 1.0 / 32;
constexpr double kBusyAsymmetry = 1.0 / 6;  ///< times the share of delayed exchanges
constexpr double kWander = 50e-9;           ///< ns per ns: of the drift between two knots
constexpr double kStepDrift = 200e-6;       ///< no crystal is so wrong
constexpr uint64_t kMaxRoundTripNs = 10'000'000'000;

struct ClockEdge {
  uint32_t node;
  uint32_t peer;  ///< of a tree's edge: nearer to the reference
  uint64_t ping_count;
  uint64_t dropped_count;
  uint64_t error_ns;  ///< of the one clock against the other
  uint64_t worst_case_ns;
  uint64_t round_trip_ns;  ///< shortest ways there and back
  int64_t drift_ppb;       ///< of the peer's clock against the node's
  bool is_in_tree;         ///< false: `error_ns` and `worst_case_ns` are not known
};

/// Of one node against the reference.
struct NodeClock {
  bool is_known = false;  ///< false: no path to the reference; all else is 0 and nothing corrected
  uint64_t error_ns = 0;
  uint64_t worst_case_ns = 0;
  int64_t offset_ns = 0;  ///< reference minus own, at the beginning
  int64_t drift_ppb = 0;  ///< of the reference against the own clock, from beginning to end
  uint32_t step_count = 0;
  std::vector<ClockKnot> knots;  ///< empty: the reference itself, or not known
};

struct ClusterClocks {
  std::vector<NodeClock> nodes;
  std::vector<ClockEdge> edges;  ///< in order of their nodes
};

/// A node as the fit needs it; `map` outlives the ClusterClock.
struct ClusterNode {
  const ClockMap* map;
  uint64_t first_ticks;  ///< about where its events begin and end: the bound holds in between
  uint64_t last_ticks;
};

class ClusterClock {
 public:
  explicit ClusterClock(std::vector<ClusterNode> nodes) : nodes_(std::move(nodes)) {}

  /// An exchange that `node` has measured with `peer`.
  void add(uint32_t node, uint32_t peer, const ClockPingDefinition& ping);

  /// All exchanges of `node` were added: only their windows stay in memory.
  void finish(uint32_t node);

  /// All clocks against that of `reference`. To be called once.
  ClusterClocks fit(uint32_t reference);

 private:
  struct Edge {
    Edge(const ClockMap& own, const ClockMap& others) : own_clock(own), peer_clock(others) {}
    ClockMap::Cursor own_clock;
    ClockMap::Cursor peer_clock;
    std::vector<Exchange> exchanges;  ///< not yet in windows
    PingWindows pings;
    uint64_t dropped_count = 0;
  };

  std::vector<ClusterNode> nodes_;
  std::map<std::pair<uint32_t, uint32_t>, Edge> edges_;  ///< (node, peer)
};

}  // namespace aon::clock
