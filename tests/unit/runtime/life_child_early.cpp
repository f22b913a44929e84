// Regions for which there is no writer: they meet the attach, or have no slot. Both their ends are
// emitted.
#include <aon/annotation.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/runtime/life_child.h"

namespace life {
namespace {

const aon::Annotation* a_region() {
  return aon::aon_find_annotation("region", 6, aon::RegionRole::kUser, aon::Paradigm::kUser);
}

void regions(int count) {
  for (int i = 0; i < count; ++i) {
    g_emitted.fetch_add(2, std::memory_order_relaxed);
    aon::begin_region(a_region());
    aon::end_region(a_region());
  }
}

std::atomic<bool> g_meets_attach{false};
std::atomic<bool> g_meets_questions{false};

}  // namespace

void run_regions_that_meet_the_attach() {
  g_meets_attach = true;
  event();
  regions(100);
  std::thread([] { regions(100); }).join();
}

/// Those that find none end when there is one again.
void run_regions_without_a_slot() {
  std::atomic<uint32_t> ready{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 40; ++i) {
    threads.emplace_back([&] {
      regions(1);
      ready.fetch_add(1);
      while (ready.load() < 40) usleep(1000);
      regions(1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_threads_that_begin_with_the_first() {
  g_meets_questions = true;
  event();
  g_meets_questions = false;
}

}  // namespace life

/// Meanwhile the runtime finds out whether there are counters, and timers.
extern "C" char* secure_getenv(const char* name) noexcept {
  const bool is_question =
      strcmp(name, "AON_COUNTERS") == 0 || strcmp(name, "AON_SAMPLING_TIMER") == 0;
  if (is_question && life::g_meets_questions) std::thread([] { life::event(); }).join();
  return getenv(name);
}

/// The runtime's wait for the agent: meanwhile this thread and another one emit.
extern "C" int poll(pollfd* entries, nfds_t count, int timeout_ms) {
  if (life::g_meets_attach && count == 1 && entries->events == POLLIN) {
    life::g_meets_attach = false;
    life::regions(3);
    std::thread([] { life::regions(5); }).join();
  }
  const timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return static_cast<int>(
      syscall(SYS_ppoll, entries, count, timeout_ms < 0 ? nullptr : &timeout, nullptr, 0));
}
