/// Counts of one process from /proc while the kernel's own counting costs it too much: software
/// events of all modes only; a thread's context switches and migrations since the last look go with
/// it, and of a process with more than kMaxProcTasks threads those of the others are not counted.
/// Owner: a session.   Thread: the provider's.
/// Cost: 20 us, and 30 to 50 us per thread, and read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "perf/kernel.h"
#include "perf/proc_counter.h"
#include "perf/table.h"

namespace aon::perf {

class StandIn {
 public:
  /// Counts from now on.
  StandIn(const Kernel& kernel, pid_t pid);

  /// Looks anew. False: the process has ended, and the counts are those of the last look.
  bool read();

  /// Of the last look; nothing of an event that /proc does not tell.
  std::optional<double> count_of(const EventType& type) const;

 private:
  /// Of /proc/PID/stat: threads that have ended among them.
  struct Usage {
    uint64_t minor_faults = 0;
    uint64_t major_faults = 0;
    uint64_t cpu_ticks = 0;    ///< 1 / _SC_CLK_TCK
    uint64_t start_ticks = 0;  ///< since boot; 0: not known
  };

  std::optional<Usage> read_usage() const;

  const Kernel* kernel_;
  pid_t pid_;
  ProcCounter counter_;
  Usage first_;
  Usage last_;
  TaskCounts tasks_{};
};

}  // namespace aon::perf
