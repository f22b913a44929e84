/// The perf provider between start() and stop(): the counters of every process of the node.
/// Owner: the provider.   Thread: the provider's.
/// Cost: 10 to 20 descriptors per thread that is there when a process attaches; to read them, see
/// counters.h.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "perf/counters.h"
#include "perf/proc_counter.h"
#include "perf/state.h"

namespace aon::perf {

class Session {
 public:
  Session(aon_core* core, const aon_core_api* api, const Kernel& kernel, Availability availability)
      : core_(core), api_(api), kernel_(kernel), availability_(std::move(availability)) {}

  void process_started(uint32_t process, pid_t pid);
  /// Samples the exact end of the counts: a descriptor outlives its process.
  void process_ended(uint32_t process);
  void tick(uint64_t now_ticks);

 private:
  struct Metrics {
    CounterGroup counters;
    std::vector<uint32_t> ids;  ///< by event; AON_NO_ID: none
  };

  /// A metric that comes from /proc.
  struct ProcMetric {
    uint64_t TaskCounts::*count;
    uint32_t id;
  };
  struct Process {
    std::vector<Metrics> metrics;
    std::optional<ProcCounter> proc;
    std::vector<ProcMetric> proc_metrics;
    int ticks_to_proc = kProcPeriodTicks;
  };

  std::vector<CounterGroup> make_groups() const;
  OpenProblems open_counters(uint32_t process_number, pid_t pid, Process& process);
  void open_proc(uint32_t process_number, pid_t pid, Process& process);
  uint32_t define(uint32_t process_number, const EventType& type);
  void sample(uint32_t process_number, Process& process, uint64_t now_ticks);

  aon_core* core_;
  const aon_core_api* api_;
  const Kernel& kernel_;
  Availability availability_;
  std::map<uint32_t, Process> processes_;  ///< by process number
};

}  // namespace aon::perf
