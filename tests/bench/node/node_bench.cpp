// bench_node: what one reading of each provider of plugins/node costs on this machine (its own
// process stands for a rank). Run by hand; never by ctest.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include "plugins/node/energy.h"
#include "plugins/node/membw.h"
#include "plugins/node/network.h"
#include "plugins/node/node.h"
#include "plugins/node/process.h"
#include "tests/unit/provider/fake_core.h"

namespace aon::node {
namespace {

constexpr size_t kKeptSamples = 100'000;

template <class T>
void reading(benchmark::State& state) {
  aon_core core;
  T session(real_system(), Output(&core, &test::fake_core_api()));
  const StateText said = session.start(0);
  if (said.state == AON_STATE_OFF) {
    state.SkipWithError(said.reason.c_str());
    return;
  }
  for (int64_t i = 0; i < state.range(0); ++i) {
    session.process_started(static_cast<uint32_t>(i), getpid());
  }
  uint64_t ticks = 0;
  for (auto _ : state) {
    session.tick(++ticks);
    if (core.samples.size() > kKeptSamples) core.samples.clear();
  }
}

BENCHMARK(reading<EnergySession>)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(reading<MembwSession>)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(reading<NetworkSession>)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(reading<NodeSession>)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(reading<ProcessSession>)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace aon::node

BENCHMARK_MAIN();
