#include "core/clock/cluster_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/clock/simulated_cluster.h"

namespace aon::clock {
namespace {

using test::kSecond;
using test::SimulatedCluster;
using test::SimulatedPath;

constexpr double kFastestDrift = 30e-6;

/// Ways that differ by as much as is assumed at most.
SimulatedPath made_path(SimulatedCluster* cluster) {
  SimulatedPath path;
  const double shortest_ns = cluster->uniform(8'000, 15'000);
  const double part = cluster->uniform(-1, 1) * kAsymmetry;
  path.there_ns = shortest_ns * (1 + part);
  path.back_ns = shortest_ns * (1 - part);
  path.busy = cluster->uniform(0, 0.6);
  return path;
}

/// Four nodes in a tree: 1 and 2 ping 0, 3 pings 2.
SimulatedCluster made_cluster(uint64_t seed, double duration_ns, double swing) {
  SimulatedCluster cluster(seed, duration_ns);
  for (int n = 0; n < 4; ++n) cluster.add_node(kFastestDrift / 2, swing);
  const std::pair<uint32_t, uint32_t> tree[] = {{1, 0}, {2, 0}, {3, 2}};
  for (const auto& [node, peer] : tree) cluster.whole_run(node, peer, made_path(&cluster));
  return cluster;
}

void expect_within_bound(const SimulatedCluster& cluster, uint64_t seed) {
  for (uint32_t n = 0; n < cluster.nodes.size(); ++n) {
    ASSERT_TRUE(cluster.clocks.nodes[n].is_known) << n;
    ASSERT_LE(cluster.largest_error_ns(n), static_cast<double>(cluster.clocks.nodes[n].error_ns))
        << "node " << n << ", seed " << seed;
    ASSERT_LE(cluster.clocks.nodes[n].error_ns, cluster.clocks.nodes[n].worst_case_ns);
  }
}

TEST(ClusterClock, true_error_is_within_the_bound_in_every_run) {
  std::vector<uint64_t> bounds;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const double duration_ns = (1 + static_cast<double>(random() % 120)) * kSecond;
    SimulatedCluster cluster = made_cluster(seed, duration_ns, 0.05e-6);
    cluster.fit();
    expect_within_bound(cluster, seed);
    if (HasFatalFailure()) return;
    bounds.push_back(cluster.clocks.nodes[3].error_ns);
  }
  std::sort(bounds.begin(), bounds.end());
  std::printf("bound over two edges: median %lu ns, 95 %% %lu, largest %lu\n", bounds[500],
              bounds[950], bounds.back());
  EXPECT_LE(bounds[950], 5000u);
}

TEST(ClusterClock, drift_that_changes_much_only_widens_the_bound) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SimulatedCluster cluster = made_cluster(seed, 120 * kSecond, 10e-6);
    cluster.fit();
    expect_within_bound(cluster, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace aon::clock
