// What one call costs, in every mode (google/benchmark). Run by hotpath_run under an agent, with
// the wrappers preloaded. An iteration is the median of short bursts, so that a preemption does not
// count; between bursts the agent gets time to drain.
#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "tests/bench/hotpath/target.h"

namespace {

constexpr int kBurstCalls = 4000;
constexpr int kBursts = 9;

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Median over bursts of the nanoseconds that one `call` takes.
template <class Call>
double nanoseconds_per_call(Call call) {
  std::array<double, kBursts> bursts;
  for (double& burst : bursts) {
    const double start = now_ns();
    for (int i = 0; i < kBurstCalls; ++i) call(i);
    burst = (now_ns() - start) / kBurstCalls;
    usleep(400);
  }
  std::nth_element(bursts.begin(), bursts.begin() + kBursts / 2, bursts.end());
  return bursts[kBursts / 2];
}

template <class Call>
void run(benchmark::State& state, Call call) {
  for (auto _ : state) state.SetIterationTime(nanoseconds_per_call(call) * 1e-9);
}

void run_function(benchmark::State& state, int (*function)(HOTPATH_PARAMETERS)) {
  static double buffer[8];
  static void* request;
  function(buffer, 1, 2, 3, 4, &state, &request);  // the first call defines the site
  run(state, [=](int i) { function(buffer, 8, 2, 3, i, nullptr, &request); });
}

void run_clock_read(benchmark::State& state) {
#if defined(__x86_64__)
  run(state, [](int) {
    const uint64_t now = __rdtsc();
    asm volatile("" ::"r"(now));
  });
#endif
}

void run_event(benchmark::State& state) {
  static void* request;
  run(state, [](int) { hotpath_event(&request); });
}

#define HOTPATH_BENCHMARK(name, ...) \
  BENCHMARK_CAPTURE(run_function, name, __VA_ARGS__)->UseManualTime()->Iterations(1)

HOTPATH_BENCHMARK(plain, hotpath_plain);
HOTPATH_BENCHMARK(forward, hotpath_forward);
HOTPATH_BENCHMARK(clock, hotpath_clock);
HOTPATH_BENCHMARK(recorded, hotpath_recorded);
HOTPATH_BENCHMARK(counted, hotpath_counted);
HOTPATH_BENCHMARK(sampled, hotpath_sampled);
HOTPATH_BENCHMARK(paused, hotpath_paused);
HOTPATH_BENCHMARK(lttng, hotpath_lttng);
BENCHMARK(run_clock_read)->Name("run_function/clock_read")->UseManualTime()->Iterations(1);
BENCHMARK(run_event)->Name("run_function/event")->UseManualTime()->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
