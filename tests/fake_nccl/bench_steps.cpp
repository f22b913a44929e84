// What a step of NCCL's proxy costs at level step, and a piece of its work at level net: all
// callbacks of one together, and once more into functions that do nothing. Lines as of bench.cpp.
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdio>

#include "tests/fake_nccl/fake_nccl.h"

namespace aon::test::nccl {

void bench_steps(Plugin* plugin, int count);

namespace {

constexpr int kSteps = 16;

int no_start(void*, void** handle, void*) {
  *handle = nullptr;
  return 0;
}
int no_stop(void*) { return 0; }
int no_state(void*, int, void*) { return 0; }
constexpr Table kNothing = {"nothing", nullptr, no_start, no_stop, no_state, no_stop};

uint64_t raw_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// A piece of work that sends, with its steps.
class Piece {
 public:
  Piece(const Table& table, void* context, int version)
      : table_(table),
        context_(context),
        op_(version, kProxyOp, nullptr, 0),
        step_(version, kProxyStep, nullptr, 0),
        network_(version, kNetPlugin, nullptr, 0) {
    op_.put(24, static_cast<int32_t>(getpid())).put(28, uint8_t{1}).put(32, 1).put(36, kSteps);
    op_.put(40, 4096).put(44, 1);
    network_.put(24, int64_t{1} << 16 | 1);
  }

  void run(bool has_steps) {
    void* op = nullptr;
    const uint64_t begin = __rdtsc();
    table_.start(context_, &op, op_.data());
    const uint64_t started = __rdtsc() - begin;
    for (int i = 0; has_steps && i < kSteps; ++i) steps.push_back(step(op, i));
    const uint64_t end = __rdtsc();
    table_.stop(op);
    pieces.push_back(static_cast<uint32_t>(started + (__rdtsc() - end)));
  }

  std::vector<uint32_t> steps;
  std::vector<uint32_t> pieces;

 private:
  uint32_t step(void* op, int number) {
    uint64_t bytes = 4096;
    void* handle = nullptr;
    void* network = nullptr;
    step_.put(8, op).put(24, number);
    const uint64_t begin = __rdtsc();
    table_.start(context_, &handle, step_.data());
    for (const int state : {8, 20, 9}) table_.state(handle, state, &bytes);
    network_.put(8, handle);
    table_.start(context_, &network, network_.data());
    table_.stop(network);
    table_.stop(handle);
    unsigned int ignored;
    return static_cast<uint32_t>(__rdtscp(&ignored) - begin);
  }

  const Table& table_;
  void* context_;
  Event op_, step_, network_;
};

void print(const char* name, std::vector<uint32_t>& ticks, double ns_per_tick) {
  if (ticks.empty()) return;
  std::sort(ticks.begin(), ticks.end());
  std::printf("%s %.2f %.2f\n", name, ticks[ticks.size() / 2] * ns_per_tick,
              ticks[ticks.size() * 999 / 1000] * ns_per_tick);
}

}  // namespace

void bench_steps(Plugin* plugin, int count) {
  void* context = plugin->init(0xbe9c, "bench", 2, 0);
  Piece ours(plugin->table(), context, plugin->version());
  Piece nothing(kNothing, nullptr, plugin->version());
  const uint64_t begin_ticks = __rdtsc();
  const uint64_t begin_ns = raw_ns();
  for (int i = 0; i < count; ++i) {
    ours.run(plugin->wants(kProxyStep));
    nothing.run(plugin->wants(kProxyStep));
  }
  const double ns_per_tick =
      static_cast<double>(raw_ns() - begin_ns) / static_cast<double>(__rdtsc() - begin_ticks);
  print("step", ours.steps, ns_per_tick);
  print("nothing.step", nothing.steps, ns_per_tick);
  print("piece", ours.pieces, ns_per_tick);
  print("nothing.piece", nothing.pieces, ns_per_tick);
  plugin->finalize(context);
}

}  // namespace aon::test::nccl
