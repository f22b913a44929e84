// bench_clock [NODES [SECONDS]]: fits the clocks of NODES nodes (1250) in a binomial tree that
// pinged each other for SECONDS (3600), and prints CPU time, memory and the largest bound.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tests/unit/clock/simulated_cluster.h"

namespace {

using namespace aon;
using namespace aon::clock;
using test::kSecond;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

uint64_t resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) / 1024;
}

ClockMap map_of(const test::SimulatedNode& node, double duration_ns) {
  std::vector<ClockDefinition> snapshots;
  for (double at = 0; at <= duration_ns; at += kSecond) {
    const uint64_t ticks = node.ticks(at);
    snapshots.push_back({ticks, ticks, static_cast<uint64_t>(node.realtime_ns + at), 40});
  }
  return ClockMap::fit(snapshots, TickSource::kTsc, 1e9, Realtime::kStart);
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1250);
  const double duration_ns = (argc > 2 ? std::strtod(argv[2], nullptr) : 3600) * kSecond;
  test::SimulatedCluster cluster(1, duration_ns);
  for (uint32_t n = 0; n < count; ++n) cluster.add_node(15e-6, 0.05e-6);
  std::vector<ClockMap> maps;
  std::vector<ClusterNode> nodes;
  maps.reserve(count);
  for (const test::SimulatedNode& node : cluster.nodes) {
    maps.push_back(map_of(node, duration_ns));
    nodes.push_back({&maps.back(), node.ticks(0), node.ticks(duration_ns)});
  }
  const uint64_t before_mib = resident_mib();
  ClusterClock fit(std::move(nodes));
  double add_s = 0;
  uint64_t ping_count = 0;
  for (uint32_t n = 1; n < count; ++n) {
    cluster.pings.clear();
    cluster.whole_run(n, n & (n - 1), test::SimulatedPath{});  // binomial: without the lowest bit
    const double start = cpu_seconds();
    for (const auto& ping : cluster.pings) fit.add(ping.node, ping.peer, ping.ticks);
    fit.finish(n);
    add_s += (cpu_seconds() - start);
    ping_count += cluster.pings.size();
  }
  const double start = cpu_seconds();
  const ClusterClocks clocks = fit.fit(0);
  const double fit_s = (cpu_seconds() - start);
  std::vector<ClockMap> corrected;
  for (uint32_t n = 0; n < count; ++n) {
    corrected.push_back(maps[n].corrected(clocks.nodes[n].knots));
  }
  const double all_s = add_s + (cpu_seconds() - start);
  uint64_t largest_ns = 0;
  size_t knot_count = 0;
  for (const NodeClock& clock : clocks.nodes) {
    largest_ns = std::max(largest_ns, clock.error_ns);
    knot_count += clock.knots.size();
  }
  std::printf(
      "%u nodes, %lu pings: %.2f s to add, %.2f s to fit, %.2f s in all; %lu MiB more; %zu knots, "
      "largest bound %lu ns\n",
      count, ping_count, add_s, fit_s, all_s, resident_mib() - before_mib, knot_count, largest_ns);
  return 0;
}
