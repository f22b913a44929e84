// What hides behind a read of the clock: what stands between two reads adds to them, beside what it
// takes alone. JSON on stdout, by case lists of rounds, each the least of its bursts in ns: "alone"
// and "added". bench.py runs it; {} where the clock is no rdtsc.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>

namespace {

constexpr int kRounds = 9;
constexpr int kBursts = 200;
constexpr uint64_t kLoops = 500;
constexpr size_t kLineBytes = 64;
constexpr size_t kLargeBytes = size_t{32} << 20;

uint64_t g_product = 3;
char* g_memory;
uint64_t g_number;  ///< loops of the bursts before

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Nothing {
  static void run(uint64_t) {}
};

#define CLOCK_HIDES_NOPS(count)                                                   \
  struct Nops##count {                                                            \
    static void run(uint64_t) { asm volatile(".rept " #count "\n nop\n .endr"); } \
  }
CLOCK_HIDES_NOPS(64);
CLOCK_HIDES_NOPS(128);
CLOCK_HIDES_NOPS(256);

/// Each of the result of the one before.
struct Products {
  static void run(uint64_t) {
    uint64_t value = g_product;
    asm volatile(".rept 16\n imul %0, %0\n .endr" : "+r"(value));
    g_product = value;
  }
};

/// Half a line, of the next one each time.
template <size_t kBytes>
struct Stores {
  static void run(uint64_t number) {
    char* at = g_memory + number * kLineBytes % kBytes;
    asm volatile("mov %1, (%0)\n mov %1, 8(%0)\n mov %1, 16(%0)\n mov %1, 24(%0)" ::"r"(at),
                 "r"(number)
                 : "memory");
  }
};

/// Of one burst. The number stays in a register: in memory it would be what is measured.
template <class Body>
double alone_ns() {
  const uint64_t first = g_number;
  const double start = now_ns();
  for (uint64_t i = 0; i < kLoops; ++i) Body::run(first + i);
  const double took_ns = now_ns() - start;
  g_number += kLoops;
  return took_ns / kLoops;
}
template <class Body>
double between_reads_ns() {
  const uint64_t first = g_number;
  const double start = now_ns();
  for (uint64_t i = 0; i < kLoops; ++i) {
    const uint64_t begin = __rdtsc();
    asm volatile("" ::"r"(begin) : "memory");
    Body::run(first + i);
    const uint64_t end = __rdtsc();
    asm volatile("" ::"r"(end) : "memory");
  }
  const double took_ns = now_ns() - start;
  g_number += kLoops;
  return took_ns / kLoops;
}

/// Of a round: the least of bursts that take turns, so that what disturbs one disturbs all.
struct Round {
  double alone_ns;
  double added_ns;
};
template <class Body>
Round measure_round() {
  double loop = 1e9;
  double alone = 1e9;
  double reads = 1e9;
  double between = 1e9;
  for (int burst = 0; burst < kBursts; ++burst) {
    loop = std::min(loop, alone_ns<Nothing>());
    alone = std::min(alone, alone_ns<Body>());
    reads = std::min(reads, between_reads_ns<Nothing>());
    between = std::min(between, between_reads_ns<Body>());
  }
  return {alone - loop, between - reads};
}

struct Case {
  const char* name;
  Round (*measure)();
  std::vector<double> alone_ns = {};
  std::vector<double> added_ns = {};
};

void print(const std::vector<double>& values) {
  std::printf("[");
  for (size_t i = 0; i < values.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ", ", values[i]);
  std::printf("]");
}

int measure() {
  g_memory = new char[kLargeBytes]();
  Case cases[] = {
      {"64 instructions that do nothing", measure_round<Nops64>},
      {"128 instructions that do nothing", measure_round<Nops128>},
      {"256 instructions that do nothing", measure_round<Nops256>},
      {"16 multiplications in a row", measure_round<Products>},
      {"4 stores in 4 KiB", measure_round<Stores<4096>>},
      {"4 stores in 32 MiB", measure_round<Stores<kLargeBytes>>},
  };
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    for (Case& one : cases) {
      const Round measured = one.measure();
      if (round < 0) continue;
      one.alone_ns.push_back(measured.alone_ns);
      one.added_ns.push_back(measured.added_ns);
    }
  }
  const char* separator = "{";
  for (const Case& one : cases) {
    std::printf("%s\"%s\": {\"alone\": ", separator, one.name);
    print(one.alone_ns);
    std::printf(", \"added\": ");
    print(one.added_ns);
    std::printf("}");
    separator = ",\n ";
  }
  std::printf("}\n");
  return 0;
}

}  // namespace

int main() { return measure(); }
#else
int main() { return std::puts("{}") < 0 ? 1 : 0; }
#endif
