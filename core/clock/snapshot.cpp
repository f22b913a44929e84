#include "core/clock/snapshot.h"

#include <time.h>

#include <algorithm>

#include "core/base/file.h"
#include "core/clock/tsc_rule.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace aon::clock {
namespace {

uint64_t read_clock(clockid_t id) noexcept {
  timespec now;
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

/// The first "flags" line of /proc/cpuinfo.
std::string cpu_flags_line() {
  const Result<std::string> text = read_text_file("/proc/cpuinfo", 64 * 1024);
  if (!text) return {};
  const size_t start = text->find("\nflags");
  if (start == std::string::npos) return {};
  return text->substr(start + 1, text->find('\n', start + 1) - start - 1);
}

std::string text_of(const char* path) {
  const Result<std::string> text = read_text_file(path);
  return text ? *text : std::string();
}

}  // namespace

TscSuitability judge_tsc(const std::string& cpu_flags, const std::string& current_clocksource,
                         const std::string& available_clocksources) {
  for (const char* flag : {"constant_tsc", "nonstop_tsc"}) {
    if (!has_word(cpu_flags.c_str(), flag)) return {false, std::string("the CPU has no ") + flag};
  }
  if (kernel_trusts_tsc(current_clocksource.c_str(), available_clocksources.c_str()))
    return {true, ""};
  std::string source = current_clocksource.substr(0, current_clocksource.find('\n'));
  return {false, "the kernel's clock source is " + (source.empty() ? "unknown" : source)};
}

TscSuitability probe_tsc() {
#if defined(__x86_64__)
  return judge_tsc(cpu_flags_line(), text_of(kCurrentClocksource), text_of(kAvailableClocksources));
#else
  return {false, "not an x86-64 CPU"};
#endif
}

TickSource choose_tick_source() {
  return probe_tsc().is_suitable ? TickSource::kTsc : TickSource::kMonotonicRaw;
}

uint64_t now_ticks(TickSource source) noexcept {
#if defined(__x86_64__)
  if (source == TickSource::kTsc) return __rdtsc();
#endif
  return read_clock(CLOCK_MONOTONIC_RAW);
}

ClockDefinition take_snapshot(TickSource source, int bracket_count) noexcept {
  ClockDefinition best{};
  best.bracket_ticks = ~uint64_t{0};
  for (int i = 0; i < std::max(bracket_count, 1); ++i) {
    const uint64_t before = now_ticks(source);
    const uint64_t raw_ns = read_clock(CLOCK_MONOTONIC_RAW);
    const uint64_t after = now_ticks(source);
    if (after < before || after - before >= best.bracket_ticks) continue;
    best.ticks = before + (after - before) / 2;
    best.bracket_ticks = after - before;
    best.monotonic_raw_ns = raw_ns;
  }
  // REALTIME only fixes the offset: one more bracket of the same kind against MONOTONIC_RAW.
  uint64_t narrowest_ns = ~uint64_t{0};
  for (int i = 0; i < std::max(bracket_count / 4, 1); ++i) {
    const uint64_t before_ns = read_clock(CLOCK_MONOTONIC_RAW);
    const uint64_t real_ns = read_clock(CLOCK_REALTIME);
    const uint64_t after_ns = read_clock(CLOCK_MONOTONIC_RAW);
    if (after_ns - before_ns >= narrowest_ns) continue;
    narrowest_ns = after_ns - before_ns;
    best.realtime_ns = real_ns - (before_ns + narrowest_ns / 2 - best.monotonic_raw_ns);
  }
  return best;
}

}  // namespace aon::clock
