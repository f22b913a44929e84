/// Hardware counters at the borders of calls (docs/counters.md): each thread opens its events as it
/// attaches, as one group, and reads them through their user pages where a call begins and ends.
///
///     aon_attach ------ open_counters: perf_event_open, mmap, close; kReadsCounters is set
///     begin_call -----> read_counters_at_entry      (where a nested call leaves the fast path)
///     finish_call ----> put_counters: a kCounters record before that of the call
///     begin and end of a region -> put_border_counters: one before that of the border
///     thread's end ---- close_counters
///
/// AON_COUNTERS, set by aon-run, says what to count: TYPE/CONFIG/CONFIG1/CONFIG2/EXCLUDE/NAME,...
/// Where it cannot be, the provider "counters" is off with reason and remedy; nothing is tried
/// again by a later thread. The descriptors are closed once the pages are mapped, which keep the
/// events alive.
/// Thread: any, each for itself.   Owner: the process; wiped in a fork()ed child, which does
/// not inherit the pages either.
/// Cost: a thread 10-20 us per event at its first event; a call twice the reading (user_page.h).
#pragma once

#include <aon/record.h>
#include <aon/ring.h>
#include <aon/writer.h>
#include <linux/perf_event.h>

#include <atomic>
#include <cstdint>

namespace aon::runtime {

struct Process;

/// One event to count, as perf_event_attr has it.
struct CounterEvent {
  uint32_t type;
  uint32_t exclude;  ///< kExcludeUser, ...
  uint64_t config[3];
};
enum CounterExclude : uint32_t { kExcludeUser = 1, kExcludeKernel = 2, kExcludeHypervisor = 4 };

enum class CounterState : uint32_t { kUnknown = 0, kOpening, kOn, kOff };

/// Of the process; all zero at first.
struct CounterPlan {
  std::atomic<uint32_t> state;         ///< CounterState
  std::atomic<uint32_t> late_threads;  ///< came while it was kOpening, and have none
  std::atomic<uint32_t> told_threads;  ///< 1: the ledger knows of threads without counters
  uint32_t count;
  bool excludes_kernel;  ///< only user mode may be counted
  CounterEvent event[kMaxRegionCounters];
};

struct CounterValues {
  uint64_t value[kMaxRegionCounters];
  uint64_t missed_ns;  ///< of all counters
  bool is_exact;
};

/// Of one thread slot; owner thread only.
struct ThreadCounters {
  const perf_event_mmap_page* page[kMaxRegionCounters];
  uint32_t count;
  CounterValues entry[kOpenSpans];
  CounterValues last;
};

/// The kernel and the registers. A test program that exports aon_counter_source() puts its own in
/// their place, for a machine without a PMU.
struct CounterSource {
  int (*open)(perf_event_attr* attr, int group);  ///< a descriptor, or -errno
  const perf_event_mmap_page* (*map)(int fd);     ///< null: errno says why
  void (*unmap)(const perf_event_mmap_page* page);
  void (*close)(int fd);
  uint64_t (*read_register)(uint32_t index);  ///< null: the instruction
};

/// Reads the list of AON_COUNTERS into `plan`; false when it is empty or not such a list.
bool parse_counters(const char* text, CounterPlan* plan);

/// Name of event `index` in the list; its length in `bytes`.
const char* counter_name(const char* text, uint32_t index, uint32_t* bytes);

/// Reads all counters of a thread. A counter that could not be read keeps its last value.
void read_thread_counters(ThreadCounters* counters, const CounterSource& source,
                          CounterValues* values);

/// The record of a call with these values at its ends; `call` is the call's own record.
Record counters_record(const RecordHead& call, uint64_t duration, uint32_t count,
                       const CounterValues& entry, const CounterValues& exit);

void open_counters(Process& p, Writer* w);
void close_counters(Process& p, Writer* w);
void read_counters_at_entry(Writer* w, uint32_t depth);
void put_counters(Writer* w, uint32_t depth, const RecordHead& call, uint64_t duration);
/// Before the kBegin or kEnd of a region (aon/annotation.h).
void put_border_counters(Writer* w);
/// From here on the thread's regions have counters at their borders (annotation.cpp).
void count_at_borders(Writer* w);

}  // namespace aon::runtime
