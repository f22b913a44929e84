// Clock of the process: whether the TSC can be it, and the pairs in a ring without an agent.
#include <aon/writer.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/clock/tsc_rule.h"
#include "core/runtime/process.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace aon::runtime {
namespace {

uint64_t nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
/// "" where it cannot be read.
void read_text(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = fd < 0 ? -1 : read(fd, text, size - 1);
  if (fd >= 0) close(fd);
  text[bytes > 0 ? bytes : 0] = '\0';
}

bool kernel_trusts_tsc() {
  char current[64];
  char available[256];
  read_text(clock::kCurrentClocksource, current, sizeof current);
  read_text(clock::kAvailableClocksources, available, sizeof available);
  return clock::kernel_trusts_tsc(current, available);
}
#endif

}  // namespace

bool tsc_is_constant() {
#if defined(__x86_64__)
  constexpr uint32_t kInvariantTscLeaf = 0x80000007u;
  constexpr uint32_t kInvariantTscBit = 1u << 8;
  uint32_t eax, ebx, ecx, edx = 0;
  if (__get_cpuid(kInvariantTscLeaf, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kInvariantTscBit) != 0 && kernel_trusts_tsc();
#else
  return false;
#endif
}

ClockPair read_clock_pair(bool clock_is_tsc) {
  Writer clock = {};
  clock.clock_is_tsc = clock_is_tsc ? 1 : 0;
  ClockPair best = {};
  best.bracket_ticks = UINT64_MAX;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const uint64_t before = ticks(&clock);
    const uint64_t raw = nanoseconds(CLOCK_MONOTONIC_RAW);
    const uint64_t real = nanoseconds(CLOCK_REALTIME);
    const uint64_t after = ticks(&clock);
    if (after - before < best.bracket_ticks) {
      best = ClockPair{before + (after - before) / 2, raw, real, after - before};
    }
  }
  return best;
}

void note_clock(Process& p) {
  uint32_t idle = 0;
  // pairs with runtime:clock
  if (!p.clock_pair_busy.compare_exchange_strong(idle, 1, std::memory_order_acquire)) return;
  p.ring->clock_last = read_clock_pair(p.ring->clock_is_tsc != 0);
  p.clock_pair_busy.store(0, std::memory_order_release);  // pairs with runtime:clock
}

}  // namespace aon::runtime
