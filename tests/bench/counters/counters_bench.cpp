// Nanoseconds of one reading of 4 counters: `counters_bench made` from pages without a PMU (the
// protocol alone), `counters_bench pmu` from the real one. Prints one number per round; exit 77 and
// a line with the reason where there is no PMU that programs may read.
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/runtime/counter_source.h"
#include "core/runtime/counters.h"

namespace {

using namespace aon::runtime;

constexpr int kRounds = 50;
constexpr int kReadings = 20000;
constexpr int kSkipped = 77;
constexpr uint64_t kEvents[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_MISSES};

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void time_readings(ThreadCounters& counters, const CounterSource& source) {
  CounterValues values;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now_ns();
    for (int i = 0; i < kReadings; ++i) read_thread_counters(&counters, source, &values);
    printf("%.2f\n", (now_ns() - begin) / kReadings);
  }
}

const char* open_real(ThreadCounters& counters, const CounterSource& source) {
  int group = -1;
  for (const uint64_t config : kEvents) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = config;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    const int fd = source.open(&attr, group);
    if (fd < 0) return explain_counters(-fd).reason;
    if (group < 0) group = fd;
    const perf_event_mmap_page* page = source.map(fd);
    if (page == nullptr) return "its page cannot be mapped";
    if (!page->cap_user_rdpmc) return explain_counters(kNotAllowed).reason;
    counters.page[counters.count++] = page;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  ThreadCounters counters{};
  if (argc == 2 && strcmp(argv[1], "made") == 0) {
    static perf_event_mmap_page pages[aon::kMaxRegionCounters];
    for (perf_event_mmap_page& page : pages) {
      page.index = 1;
      page.pmc_width = 48;
      counters.page[counters.count++] = &page;
    }
    const CounterSource source = {nullptr, nullptr, nullptr, nullptr,
                                  [](uint32_t) -> uint64_t { return 1; }};
    time_readings(counters, source);
    return 0;
  }
  if (const char* reason = open_real(counters, counter_source())) {
    printf("skipped: %s\n", reason);
    return kSkipped;
  }
  time_readings(counters, counter_source());
  return 0;
}
