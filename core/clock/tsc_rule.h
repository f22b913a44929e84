/// Whether the kernel trusts the time stamp counter, by its words. One rule for the agent and for a
/// process without one: what one of them measures with is what the other would.
///
/// Owner: nobody.   Thread: any.   Signal: safe.   Cost: of reading the two texts.
#pragma once

#include <stddef.h>
#include <string.h>

namespace aon::clock {

/// Where the kernel names its clock sources.
inline constexpr const char* kCurrentClocksource =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";
inline constexpr const char* kAvailableClocksources =
    "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Whether `word` stands in `text` between white space: "tsc" is not in "tsc-early".
inline bool has_word(const char* text, const char* word) {
  const size_t word_bytes = strlen(word);
  for (const char* next = text; *next != '\0';) {
    next += strspn(next, " \t\n");
    const size_t here_bytes = strcspn(next, " \t\n");
    if (here_bytes == word_bytes && memcmp(next, word, word_bytes) == 0) return true;
    next += here_bytes;
  }
  return false;
}

/// By what the two files say; "" where one cannot be read. The kernel takes a TSC that it found
/// unsteady off the list of available ones. A guest of KVM has kvm-clock, which is made of the TSC.
inline bool kernel_trusts_tsc(const char* current, const char* available) {
  if (has_word(current, "tsc")) return true;
  return has_word(current, "kvm-clock") && has_word(available, "tsc");
}

}  // namespace aon::clock
