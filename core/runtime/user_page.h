/// Reads a hardware counter through the page that perf shares with the thread it counts, without a
/// syscall: the protocol of perf_event_mmap_page (linux/perf_event.h).
///
///     lock even          what the page says is one state; the kernel adds 1 at a change's two ends
///     index - 1          the register to read; 0: the event is not on the PMU now
///     offset + register  the count; the register is pmc_width bits wide, signed
///     enabled - running  how long it was not on the PMU while its thread ran
///
/// The kernel writes the page on the CPU of the thread it belongs to: the order of the program is
/// enough.   Thread: the one that is counted.   Signal: safe.
/// Cost: about 30 ns a counter; at most kPageTries times that.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

namespace aon::runtime {

constexpr int kPageTries = 16;  ///< a page that changes more often is given up

enum class PageState : uint8_t {
  kCounting,  ///< the value is exact
  kOff,       ///< not on the PMU: the value is what was counted before
  kChanging,  ///< no value
};

struct PageReading {
  uint64_t value = 0;
  uint64_t missed_ns = 0;  ///< enabled - running, as of the last change of the page
  PageState state = PageState::kChanging;
};

constexpr int64_t sign_extend(uint64_t value, uint32_t width) {
  if (width == 0 || width >= 64) return static_cast<int64_t>(value);
  return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}

/// `read_register(i)` is rdpmc with i in ecx.
template <class ReadRegister>
[[gnu::always_inline]] inline PageReading read_user_page(const volatile perf_event_mmap_page* page,
                                                         ReadRegister read_register) {
  PageReading reading;
  for (int attempt = 0; attempt < kPageTries; ++attempt) {
    const uint32_t lock = page->lock;
    asm volatile("" ::: "memory");
    const uint32_t index = page->index;
    uint64_t value = static_cast<uint64_t>(page->offset);
    reading.missed_ns = page->time_enabled - page->time_running;
    if (index != 0) {
      value += static_cast<uint64_t>(sign_extend(read_register(index - 1), page->pmc_width));
    }
    asm volatile("" ::: "memory");
    if (page->lock != lock || (lock & 1) != 0) continue;
    reading.value = value;
    reading.state = index != 0 ? PageState::kCounting : PageState::kOff;
    break;
  }
  return reading;
}

}  // namespace aon::runtime
