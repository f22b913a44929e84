/// Counters of one process: one descriptor per event and thread. A counter follows the threads that
/// its thread starts later (inherit), so every thread born after open() is counted without another
/// descriptor; one born during open() by a thread whose turn had not come is missed.
///
/// Events of a group are read together. Reading interrupts the core that their thread runs on,
/// once: six events one by one cost 50 us and six interrupts, together 17 us and one. Hardware
/// events stay alone: a group that does not fit on the counters would never run.
///
/// When there are more events than hardware counters the kernel takes turns. What was counted is
/// then scaled by enabled / running, for each thread and each interval between two reads on its
/// own, so a total never decreases. An interval in which the counter ran less than kMinRunningNs
/// is not scaled: it is joined to the next one.
///
/// Owner: the provider.   Thread: the provider's.   Cost: 4-10 us to open one descriptor; to read a
/// group of a thread 1 us, and 8 to 17 while it runs on another core of a virtual machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Whether this kernel reads groups of inherited events (5.2): asked with `type`.
bool probe_groups(const Kernel& kernel, const EventType& type, const Probe& how);

/// Whether this CPU has cores of two kinds, each with a PMU of its own (Intel's hybrid ones).
bool has_hybrid_cores(const Kernel& kernel);

/// Whether `type` counts on performance cores alone there, as it names no PMU: the time on others
/// is time in which it does not run, and what is scaled by it is a guess (Linux
/// tools/perf/Documentation/intel-hybrid.txt).
bool is_of_performance_cores(const EventType& type);

/// Attributes to open `type` with, as `how` found them.
perf_event_attr attributes(const EventType& type, const Probe& how);

/// One event of one process, or a group of them.
class CounterGroup {
 public:
  struct Event {
    const EventType* type;
    Probe how;
    bool is_open = false;  ///< on one task at least
    int error_number = 0;  ///< the first (of a thread that has ended none)
  };

  /// `events`: at least one; several only where probe_groups() and of software.
  CounterGroup(const Kernel& kernel, std::vector<Event> events);
  ~CounterGroup();
  CounterGroup(CounterGroup&& other) noexcept;
  CounterGroup& operator=(CounterGroup&& other) noexcept;

  /// Opens all events on every task. With an error some threads may be counted all the same.
  void open(std::span<const pid_t> tasks);
  /// Totals are 0 again: open() begins anew.
  void close();

  /// Totals now, by event; nothing of those of which no thread has run long enough to be scaled
  /// since the last time. Valid until the next call.
  std::span<const std::optional<Reading>> read();

  bool is_open() const { return !tasks_.empty(); }
  std::span<const Event> events() const { return events_; }

 private:
  struct Raw {
    uint64_t value = 0;
    uint64_t enabled_ns = 0;
    uint64_t running_ns = 0;
  };
  struct Member {
    size_t event;
    int fd;
    Raw taken;  ///< what is in totals_ already
  };
  using Task = std::vector<Member>;  ///< the first one's descriptor reads all

  int open_member(size_t event, pid_t tid, int group);
  bool read_task(const Task& task);
  /// Adds what `now` has over `member.taken` to the total. False: ran too little to be scaled.
  bool take(Member& member, const Raw& now);

  const Kernel* kernel_;
  std::vector<Event> events_;
  std::vector<Task> tasks_;
  std::vector<Reading> totals_;                   ///< by event
  std::vector<std::optional<Reading>> readings_;  ///< the same
  std::vector<uint64_t> words_;                   ///< as read
};

}  // namespace aon::perf
