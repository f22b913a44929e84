/// Counters of one process: one descriptor per event and thread. A counter follows the threads that
/// its thread starts later (inherit), so every thread born after open() is counted without another
/// descriptor; one born during open() by a thread whose turn had not come is missed.
///
/// When there are more events than hardware counters the kernel takes turns. What was counted is
/// then scaled by enabled / running, for each thread and each interval between two reads on its
/// own, so a total never decreases. An interval in which the counter ran less than kMinRunningNs
/// is not scaled: it is joined to the next one.
///
/// Owner: the provider.   Thread: the provider's.   Cost: 4-10 us to open and about 1 us to read
/// one descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "perf/kernel.h"
#include "perf/table.h"

namespace aon::perf {

constexpr uint64_t kMinRunningNs = 5'000'000;
constexpr size_t kMaxTasks = 64;  ///< of a process, when it attaches; each may start more

/// Sum over the threads of a process since open().
struct Reading {
  double value = 0;  ///< scaled
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

/// How an event can be opened on this machine.
struct Probe {
  bool available = false;
  bool exclude_kernel = false;  ///< only user mode may be counted
  bool threads_only = true;  ///< attr.inherit_thread is known (5.13): forked children are left out
  int error_number = 0;      ///< when not available
};

/// Finds out by opening `type` on the calling thread.
Probe probe(const Kernel& kernel, const EventType& type);

/// Attributes to open `type` with, as `how` found them.
perf_event_attr attributes(const EventType& type, const Probe& how);

/// One event of one process.
class Counter {
 public:
  Counter(const Kernel& kernel, const EventType& type, const Probe& how)
      : kernel_(&kernel), type_(&type), how_(how) {}
  ~Counter();
  Counter(Counter&& other) noexcept;
  Counter& operator=(Counter&& other) noexcept;

  /// Opens it on every task. Returns 0, or the first error (ESRCH of a thread that has ended is
  /// none). With an error some threads may be counted all the same.
  int open(const std::vector<pid_t>& tasks);

  /// Totals now; nothing while no thread has run long enough to be scaled since the last time.
  std::optional<Reading> read();

  bool is_open() const { return !tasks_.empty(); }
  const EventType& type() const { return *type_; }

 private:
  struct Raw {
    uint64_t value = 0;
    uint64_t enabled_ns = 0;
    uint64_t running_ns = 0;
  };
  struct Task {
    int fd;
    Raw taken;  ///< what is in total_ already
  };

  /// Adds what `now` has over `task.taken` to the total. False: ran too little to be scaled.
  bool take(Task& task, const Raw& now);

  const Kernel* kernel_;
  const EventType* type_;
  Probe how_;
  std::vector<Task> tasks_;
  Reading total_;
};

}  // namespace aon::perf
