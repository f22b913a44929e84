/// The perf provider between start() and stop(): the counters of every process of the node.
///
/// The kernel's counting makes context switches and page faults of the process dearer (cost.h).
/// That is charged, and where the budget wants less of it the dearest are counted from /proc.
///
/// Owner: the provider.   Thread: the provider's.
/// Cost: 10 to 20 descriptors per thread that is there when a process attaches; to read them, see
/// counters.h and stand_in.h.
#pragma once

#include <aon/provider.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perf/counters.h"
#include "perf/proc_counter.h"
#include "perf/stand_in.h"
#include "perf/state.h"

namespace aon::perf {

class Session {
 public:
  /// `switch_ns`: what a context switch of a process costs it.
  Session(aon_core* core, const aon_core_api* api, const Kernel& kernel, Availability availability,
          uint64_t switch_ns)
      : core_(core),
        api_(api),
        kernel_(kernel),
        availability_(std::move(availability)),
        switch_ns_(switch_ns) {}

  void process_started(uint32_t process, pid_t pid);
  /// Samples the exact end of the counts: a descriptor outlives its process.
  void process_ended(uint32_t process);
  void tick(uint64_t now_ticks);
  /// Counting is to cost 1/divisor of what it would if the kernel counted all; 0: nothing.
  void throttle(uint32_t divisor);

 private:
  static constexpr int kLooksPerRetry = 10;  ///< to count a process by the kernel again

  struct Metric {
    const EventType* type;
    uint32_t id;      ///< AON_NO_ID: not sampled
    Reading base{};   ///< before its group was opened last
    Reading total{};  ///< as given last
  };
  struct Group {
    CounterGroup counters;
    std::vector<Metric> metrics{};  ///< of its events, in order, then of what follows from these
  };

  /// A metric that comes from /proc.
  struct ProcMetric {
    uint64_t TaskCounts::*count;
    uint32_t id;
    uint64_t price_ns;   ///< of one more
    uint64_t given = 0;  ///< last
  };
  struct Process {
    pid_t pid = 0;
    std::vector<Group> groups;
    std::optional<ProcCounter> proc;
    std::vector<ProcMetric> proc_metrics;
    int ticks_to_proc = kProcPeriodTicks;
    StateText state{};
    std::optional<StandIn> stand_in;  ///< while `groups` are closed
    bool was_left = false;            ///< counted from /proc, now or before
    bool is_refused = false;          ///< it was to be counted by the kernel again
    std::string missed{};             ///< events that /proc does not tell
    uint64_t cost_ns = 0;             ///< what counting cost it, or would have
    uint64_t period_cost_ns = 0;      ///< when the period of kProcPeriodTicks began
    uint64_t cost_rate = 0;           ///< ns in the period before
    int ticks_to_rate = kProcPeriodTicks;
  };

  bool follows_from_others(const ProbedEvent& event) const;
  std::vector<CounterGroup> make_groups() const;
  void add_derived(uint32_t process_number, Group& group, OpenProblems& problems);
  uint64_t price_ns(const EventType& type) const;
  void give(uint32_t process_number, Process& process, Metric& metric, const Reading& since_base,
            uint64_t now_ticks);
  OpenProblems open_counters(uint32_t process_number, pid_t pid, Process& process);
  void open_proc(uint32_t process_number, pid_t pid, Process& process);
  uint32_t define(uint32_t process_number, const EventType& type);
  void report(uint32_t process_number, const Process& process);
  void sample(uint32_t process_number, Process& process, uint64_t now_ticks);
  void sample_counters(uint32_t process_number, Process& process, uint64_t now_ticks);
  void sample_proc(uint32_t process_number, Process& process, uint64_t now_ticks);
  void sample_stand_in(uint32_t process_number, Process& process, uint64_t now_ticks);
  void charge(Process& process, uint64_t cost_ns);
  /// What a process pays for being counted.
  struct Priced {
    uint64_t cost_rate;  ///< ns a second
    uint32_t number;
  };

  std::vector<Priced> by_price() const;
  void leave_more();
  std::string missed_events(const Process& process) const;
  void close_groups(Process& process);
  void leave(uint32_t process_number, Process& process);
  void take_back(uint32_t process_number, Process& process);

  aon_core* core_;
  const aon_core_api* api_;
  const Kernel& kernel_;
  Availability availability_;
  uint64_t switch_ns_;
  uint32_t divisor_ = 1;  ///< of the last throttle()
  int ticks_to_look_ = kProcPeriodTicks;
  int looks_to_retry_ = kLooksPerRetry;
  std::map<uint32_t, Process> processes_;  ///< by process number
};

}  // namespace aon::perf
