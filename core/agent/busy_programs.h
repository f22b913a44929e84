/// Registered programs that have said no Hello: whether one of them computes. Then it has no MPI,
/// or one whose calls do not pass the preloaded library, and the agent follows it from outside as
/// it does where MPI calls are not wanted. Shells, launchers and wrappers use too little CPU time
/// of their own for that.
///
///     add ---> has used kBusyCpuNs ---> due ---> forget: it is followed
///                      ^                   `---> put_off: until it has used as much again
///     refuse: what it runs may not be followed; what it becomes (exec) may
///     forget at any time: it has said Hello, or has ended
///
/// What a killed worker knew of them stands in the state (RegisteredPid, and who is a process).
/// Thread: the drain thread.   Cost: 1 us for each, once a second.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/agent/proc.h"

namespace aon::agent {

/// CPU time of all threads of a program that is no mere launcher.
constexpr uint64_t kBusyCpuNs = 1'000'000'000;
constexpr uint64_t kBusyLookNs = 1'000'000'000;  ///< from one look at all to the next
constexpr size_t kMostBusyAtOnce = 32;           ///< each takes as long as a process that attaches

class BusyPrograms {
 public:
  using CpuTime = uint64_t (*)(pid_t) noexcept;

  explicit BusyPrograms(CpuTime cpu_time_ns = proc::cpu_time_ns) : cpu_time_ns_(cpu_time_ns) {}

  /// `number`: of the program in the state.
  void add(uint32_t number, pid_t pid) { programs_[number] = {pid, kBusyCpuNs, 0}; }
  void put_off(uint32_t number);
  /// `image`: of followable.h.
  void refuse(uint32_t number, uint64_t image);
  uint64_t refused_image(uint32_t number) const;  ///< 0: none
  bool has(uint32_t number) const { return programs_.count(number) != 0; }
  void forget(uint32_t number) { programs_.erase(number); }
  /// aon-run may stand before aon-run: several have one pid. Returns their numbers.
  std::vector<uint32_t> forget_pid(pid_t pid);
  /// Numbers of those that are due, kMostBusyAtOnce of them; each has to be put off or forgotten.
  std::vector<uint32_t> due(uint64_t now_ns);

 private:
  struct Program {
    pid_t pid;
    uint64_t limit_ns;       ///< of its CPU time
    uint64_t refused_image;  ///< 0: none
  };
  CpuTime cpu_time_ns_;
  std::map<uint32_t, Program> programs_;
  uint64_t last_look_ns_ = 0;
};

}  // namespace aon::agent
