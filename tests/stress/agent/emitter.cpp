// Writes numbered records from several threads through libaon.so and says how many were taken and
// refused:  emitter THREADS RECORDS_PER_THREAD BURST PAUSE_US [kill|open|bell|hold SECONDS]
// RECORDS_PER_THREAD 0: until SIGUSR1.
// Prints "tid accepted refused" per thread and exits 0; `kill` ends it by SIGKILL after printing,
// `open` leaves a region and ends by _exit(7), `bell` prints how often the agent was woken.
#include <aon/bell.h>
#include <aon/writer.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> g_is_told_to_stop{false};

struct Totals {
  uint64_t accepted = 0;
  uint64_t refused = 0;
};

Totals emit_records(uint64_t count, uint64_t burst, unsigned pause_us, uint32_t region) {
  Totals totals;
  aon::Writer* w = aon::aon_attach();
  if (w == nullptr) return totals;
  for (uint64_t i = 0; i < count || (count == 0 && !g_is_told_to_stop); ++i) {
    const uint64_t now = aon::ticks(w);
    const bool ok = aon::emit(w, 1, true, now, [&](char* at) {
      auto* head = reinterpret_cast<aon::RecordHead*>(at);
      *head = {now, 1, aon::RecordKind::kMark, 1, 0, region, 0, i + 1};
    });
    ++(ok ? totals.accepted : totals.refused);
    if (pause_us != 0 && i % burst == burst - 1) ::usleep(pause_us);
  }
  return totals;
}

/// Of the page that the runtime has mapped; -1: none.
long bell_rings() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("aon-bell") == std::string::npos) continue;
    const auto* bell = reinterpret_cast<const aon::Bell*>(std::stoull(line, nullptr, 16));
    return bell->rings.load();
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const auto threads = static_cast<size_t>(std::atoi(argv[1]));
  const uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const uint64_t burst = std::strtoull(argv[3], nullptr, 10);
  const auto pause_us = static_cast<unsigned>(std::atoi(argv[4]));
  const char* ending = argc > 5 ? argv[5] : "";
  ::signal(SIGUSR1, [](int) { g_is_told_to_stop = true; });
  const uint32_t region = aon::aon_intern_region("emitter", 9, 0);
  ::usleep(200000);  // the test looks whether it got a ring
  std::vector<Totals> totals(threads);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i)
    workers.emplace_back([&, i] { totals[i] = emit_records(count, burst, pause_us, region); });
  for (std::thread& worker : workers) worker.join();
  uint64_t accepted = 0;
  uint64_t refused = 0;
  for (const Totals& one : totals) {
    accepted += one.accepted;
    refused += one.refused;
  }
  std::printf("%llu %llu\n", static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(refused));
  if (std::strcmp(ending, "bell") == 0) std::printf("bell %ld\n", bell_rings());
  std::fflush(stdout);
  if (std::strcmp(ending, "hold") == 0 && argc > 6) ::sleep(static_cast<unsigned>(atoi(argv[6])));
  if (std::strcmp(ending, "kill") == 0) ::raise(SIGKILL);
  if (std::strcmp(ending, "exit7") == 0) ::_exit(7);
  return 0;
}
