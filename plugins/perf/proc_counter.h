/// Context switches and CPU migrations of one process from /proc, for users whom the kernel does
/// not let count kernel-side events (kernel.perf_event_paranoid 2, its default). A thread that ends
/// takes what it did since the last read with it, so sums may be a little low.
/// Owner: a session.   Thread: the provider's.   Cost: 30-50 us per thread and read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "perf/kernel.h"

namespace aon::perf {

constexpr int kProcPeriodTicks = 10;  ///< read in one tick of so many
constexpr size_t kMaxProcTasks = 256;

class ProcCounter {
 public:
  /// What the threads of `pid` did before does not count.
  ProcCounter(const Kernel& kernel, pid_t pid);

  /// Sums since the constructor.
  TaskCounts read();

 private:
  void update(bool is_baseline);

  const Kernel* kernel_;
  pid_t pid_;
  std::unordered_map<pid_t, TaskCounts> last_;  ///< by thread
  TaskCounts total_{};
};

}  // namespace aon::perf
