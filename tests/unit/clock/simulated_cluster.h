/// Nodes whose clocks and network run as told: what their agents would record, and the truth.
/// Time is simulated: nothing here depends on the machine.
#pragma once

#include <aon/definition.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/clock/clock_map.h"
#include "core/clock/cluster_clock.h"

namespace aon::clock::test {

constexpr double kSecond = 1e9;

/// Ticks are its crystal's ns. `at` is the true time in ns since the job began.
struct SimulatedNode {
  double first_ticks = 1e14;
  double drift = 0;  ///< of the crystal, ns per ns
  double swing = 0;  ///< amplitude of what the drift changes by
  double period_ns = 1e12;
  double phase = 0;
  double step_at_ns = 1e18;  ///< from when on the crystal is `step_ns` ahead
  double step_ns = 0;
  double realtime_ns = 1.7e18;

  uint64_t ticks(double at) const {
    const double turn = 2 * M_PI * at / period_ns + phase;
    const double bent = swing * period_ns / (2 * M_PI) * (std::cos(phase) - std::cos(turn));
    const double local = at * drift + bent + (at > step_at_ns ? step_ns : 0);
    return static_cast<uint64_t>(first_ticks) + static_cast<uint64_t>(std::llround(at + local));
  }
};

struct SimulatedPath {
  double there_ns = 10'000;  ///< shortest ways
  double back_ns = 10'000;
  double jitter_ns = 1'500;
  double busy = 0.3;  ///< part of the messages that wait for a processor or the network
  double busy_ns = 5'000'000;
};

class SimulatedCluster {
 public:
  SimulatedCluster(uint64_t seed, double duration_ns) : random_(seed), duration_ns_(duration_ns) {}

  std::mt19937_64& random() { return random_; }
  double duration_ns() const { return duration_ns_; }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  /// A node with a drift up to `drift` that changes by up to `swing`.
  SimulatedNode& add_node(double drift = 0, double swing = 0) {
    SimulatedNode node;
    node.first_ticks = uniform(1e12, 1e15);
    node.drift = uniform(-drift, drift);
    node.swing = uniform(0, swing);
    node.period_ns = uniform(60, 600) * kSecond;
    node.phase = uniform(0, 6.28);
    node.realtime_ns += uniform(-1e7, 1e7);
    nodes.push_back(node);
    return nodes.back();
  }

  /// The way of one message.
  double way_ns(double shortest_ns, const SimulatedPath& path) {
    double way = shortest_ns + std::exponential_distribution<double>(1 / path.jitter_ns)(random_);
    // Heavy tail: as many of 10 us as of 100 us and 1 ms.
    if (uniform(0, 1) < path.busy) way += 1e4 * std::pow(path.busy_ns / 1e4, uniform(0, 1));
    return way;
  }

  /// `count` exchanges, back to back, from `at` on. Returns when they are over.
  double burst(uint32_t node, uint32_t peer, const SimulatedPath& path, double at, int count) {
    for (int i = 0; i < count; ++i) {
      const double received = at + way_ns(path.there_ns, path);
      const double sent = received + uniform(500, 2000);
      const double back = sent + way_ns(path.back_ns, path);
      pings.push_back({node,
                       peer,
                       {nodes[node].ticks(at), nodes[peer].ticks(received), nodes[peer].ticks(sent),
                        nodes[node].ticks(back)}});
      at = back + uniform(500, 3000);
    }
    return at;
  }

  /// As agents do it: much at the beginning, a little every ten seconds, much at the end.
  void whole_run(uint32_t node, uint32_t peer, const SimulatedPath& path) {
    double at = burst(node, peer, path, uniform(1e6, 5e7), 100);
    while (at + 10 * kSecond < duration_ns_) at = burst(node, peer, path, at + 10 * kSecond, 20);
    burst(node, peer, path, std::max(at, duration_ns_ - 5e7), 100);
  }

  /// The nodes' maps and the fit of all pings.
  const ClusterClocks& fit(uint32_t reference = 0) {
    maps.clear();
    maps.reserve(nodes.size());
    std::vector<ClusterNode> parts;
    for (const SimulatedNode& node : nodes) {
      std::vector<ClockDefinition> snapshots;
      for (double at = 0; at <= duration_ns_; at += kSecond) {
        const uint64_t ticks = node.ticks(at);
        snapshots.push_back({ticks, ticks + static_cast<uint64_t>(uniform(0, 20)),
                             static_cast<uint64_t>(node.realtime_ns + at), 40});
      }
      maps.push_back(ClockMap::fit(snapshots, TickSource::kTsc, 1e9, Realtime::kStart));
    }
    for (size_t n = 0; n < nodes.size(); ++n) {
      parts.push_back({&maps[n], nodes[n].ticks(0), nodes[n].ticks(duration_ns_)});
    }
    ClusterClock cluster(std::move(parts));
    for (const Ping& ping : pings) cluster.add(ping.node, ping.peer, ping.ticks);
    clocks = cluster.fit(reference);
    corrected.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      corrected.push_back(maps[n].corrected(clocks.nodes[n].knots));
    }
    return clocks;
  }

  /// How far the corrected time of `node` is from the reference's at the true time `at`.
  double error_ns(uint32_t node, double at, uint32_t reference = 0) const {
    const uint64_t told = corrected[node].to_ns(nodes[node].ticks(at));
    const uint64_t truth = maps[reference].to_ns(nodes[reference].ticks(at));
    return std::abs(static_cast<double>(static_cast<int64_t>(told - truth)));
  }
  double largest_error_ns(uint32_t node) const {
    double largest = 0;
    for (double part = 0; part <= 1; part += 1.0 / 256) {
      largest = std::max(largest, error_ns(node, part * duration_ns_));
    }
    return largest;
  }

  struct Ping {
    uint32_t node;
    uint32_t peer;
    ClockPingDefinition ticks;
  };
  std::vector<SimulatedNode> nodes;
  std::vector<Ping> pings;
  std::vector<ClockMap> maps;
  std::vector<ClockMap> corrected;
  ClusterClocks clocks;

 private:
  std::mt19937_64 random_;
  double duration_ns_;
};

}  // namespace aon::clock::test
