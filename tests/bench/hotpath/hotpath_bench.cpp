// What one call costs, in every mode (google/benchmark). Run by hotpath_run under an agent, with
// the wrappers preloaded. An iteration is the median of short bursts on an undisturbed core: where
// another hyperthread of the core works, often that of another virtual machine, everything takes
// half as long again, and differences of nanoseconds mean nothing. Between bursts the agent gets
// time to drain.
#include <aon/annotate.h>
#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "tests/bench/hotpath/target.h"
#include "tests/e2e/annotate/programs/nvtx_loader.h"

namespace {

constexpr int kBurstCalls = 250;
constexpr size_t kBursts = 60;
constexpr int kMostTries = 6000;
constexpr int kTriesPerRest = 16;

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Nanoseconds of a loop of fixed length whose pace is that of the core's front end.
double reference_ns() {
  uint64_t sum = 0;
  const double start = now_ns();
  for (int i = 0; i < 3000; ++i) asm volatile("add $1, %0" : "+r"(sum));
  return now_ns() - start;
}

/// Whether the core does nothing else just now: the reference loop takes as long as it ever did.
bool is_undisturbed() {
  static double fastest = 1e9;
  const double now = reference_ns();
  fastest = std::min(fastest, now);
  return now < fastest * 1.08;
}

/// Median of the nanoseconds that one `call` takes, over bursts with an undisturbed moment before
/// and after each; of all bursts (and `share` says so) where there are no such moments. `share` is
/// the part of the bursts that counted.
template <class Call>
double nanoseconds_per_call(Call call, double& share) {
  std::vector<double> good;
  std::vector<double> all;
  while (good.size() < kBursts && all.size() < kMostTries) {
    if (all.size() % kTriesPerRest == kTriesPerRest - 1) usleep(400);
    const bool before = is_undisturbed();
    const double start = now_ns();
    for (int i = 0; i < kBurstCalls; ++i) call(i);
    all.push_back((now_ns() - start) / kBurstCalls);
    if (before && is_undisturbed()) good.push_back(all.back());
  }
  share = static_cast<double>(good.size()) / static_cast<double>(all.size());
  std::vector<double>& used = good.size() < kBursts ? all : good;
  std::nth_element(used.begin(), used.begin() + used.size() / 2, used.end());
  return used[used.size() / 2];
}

template <class Call>
void run(benchmark::State& state, Call call) {
  double share = 0;
  for (auto _ : state) state.SetIterationTime(nanoseconds_per_call(call, share) * 1e-9);
  state.counters["undisturbed"] = share;
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

/// A region of annotate.h, begun and ended.
void run_region(benchmark::State& state) {
  const aon_region_t region = aon_region("bench");
  run(state, [=](int) {
    aon_region_begin(region);
    aon_region_end(region);
  });
}

/// The same without AON: what an annotation costs then.
void run_no_region(benchmark::State& state) {
  static aon_region_t none;
  run(state, [=](int) {
    const aon_region_t region = __atomic_load_n(&none, __ATOMIC_RELAXED);
    aon_region_begin(region);
    aon_region_end(region);
  });
}

/// A range of NVTX, pushed and popped: a name of the length that programs use.
void run_nvtx(benchmark::State& state) {
  run(state, [](int) {
    nvtxRangePushA("ncclAllReduce");
    nvtxRangePop();
  });
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
BENCHMARK(run_region)->Name("run_function/region")->UseManualTime()->Iterations(1);
BENCHMARK(run_no_region)->Name("run_function/no_region")->UseManualTime()->Iterations(1);
BENCHMARK(run_nvtx)->Name("run_function/nvtx")->UseManualTime()->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
