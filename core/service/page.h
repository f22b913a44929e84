/// The page that the node's service shares with the agents of all users: the metrics of the whole
/// node that need permissions a user has not (energy, memory bandwidth), read once for all, and
/// where programs died in AON's own code. A sealed memfd: whoever gets its descriptor can map it
/// read-only, and neither grow, shrink nor write it.
///
///     service --socket /run/aon/node.sock: Hello{layout} + memfd--> any local user
///             reads while somebody is connected; nothing else is ever said
///
/// Any user may read all of it, so nothing in it is of a user's job: node-wide sums, and of a crash
/// the thread's number and an offset in our library (no name, no address). Where /proc hides even
/// numbers (hidepid), there are no crashes in it.
/// Entries are replaced under a version of their own (odd: being written), so that a reader sees
/// all of a sample or none of it.   Layout only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aon::service {

constexpr uint64_t kPageMagic = 0x3145474150414f4e;  ///< "NOAPAGE1"
constexpr uint32_t kPageVersion = 1;
constexpr uint32_t kMaxShared = 16;    ///< providers
constexpr uint32_t kMaxSeries = 1024;  ///< of all
constexpr uint32_t kCrashCount = 64;   ///< the newest
constexpr const char* kSocketPath = "/run/aon/node.sock";

struct SharedProvider {
  char name[32];
  std::atomic<uint32_t> state;  ///< aon_state; the texts are those of the first
  char reason[256];
  char remedy[256];
};

struct SharedSeries {
  uint32_t provider;  ///< index
  uint32_t mode;      ///< aon_metric_mode
  char name[64];
  char unit[16];
  char description[176];
  std::atomic<uint32_t> version;
  uint32_t reserved;
  std::atomic<uint64_t> ticks;  ///< of the last sample; 0: none yet
  std::atomic<double> value;
  std::atomic<uint64_t> enabled_ns;
  std::atomic<uint64_t> running_ns;
};

struct SharedCrash {
  std::atomic<uint32_t> version;
  std::atomic<int32_t> tid;
  std::atomic<uint32_t> place;  ///< aon/crash.h
};

/// Providers and series are filled in before their count goes up (release, tag service:count).
struct Page {
  uint64_t magic;
  uint32_t version;
  uint32_t clock_is_tsc;
  std::atomic<uint32_t> provider_count;
  std::atomic<uint32_t> series_count;
  std::atomic<uint32_t> has_log;      ///< 1: the service reads the kernel's log
  std::atomic<uint32_t> crash_count;  ///< so far; entry i is at i modulo kCrashCount
  SharedProvider providers[kMaxShared];
  SharedSeries series[kMaxSeries];
  SharedCrash crashes[kCrashCount];
};
static_assert(std::atomic<double>::is_always_lock_free);

/// What comes with the descriptor.
struct PageHello {
  uint64_t magic;
  uint32_t version;
  uint32_t page_bytes;
};

}  // namespace aon::service
