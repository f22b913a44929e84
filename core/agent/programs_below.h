/// Programs that others have started which say nothing, and that compute: what a script or a driver
/// waits for. aon-run has registered none of them, so they are looked for in /proc, below silent
/// programs of the launch. What a process that records has started is its own affair (data
/// loaders, compilers), and so is all below that. One that is found goes on like a program that
/// was registered (busy_programs.h), but the launch does not wait for its end.
/// Thread: the drain thread asks, and waits for no answer.
/// Cost: a thread, once a second, while there are silent programs: 20 us for each thread of theirs
/// and of what they have started. Where that comes to more, less often: half a percent of a core.
/// Errors: a kernel without CONFIG_PROC_CHILDREN, or where no thread can be made, tells of none.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/agent/beside.h"

namespace aon::agent {

constexpr uint64_t kBelowLookNs = 1'000'000'000;
constexpr uint64_t kBelowRest = 200;  ///< a look is not due for so many times its CPU time
constexpr uint32_t kMostBelow = 256;  ///< of one launch on one node
constexpr size_t kMostRefused = 1024;
constexpr size_t kMostLookedThrough = 4096;  ///< processes, in one look

struct BelowQuestion {
  struct Root {
    pid_t pid;
    uint32_t number;  ///< of the registered program in the state, or of the one it descends from
  };
  std::vector<Root> roots;              ///< silent ones
  std::set<pid_t> recorded;             ///< have said Hello
  std::set<pid_t> known;                ///< silent ones that are looked at, or followed, already
  std::map<pid_t, uint64_t> refused{};  ///< start time by pid: their Hello was refused, and they
                                        ///< record into a file of their own
};

struct BusyBelow {
  pid_t pid;
  uint64_t start_time_ticks;
  uint32_t number;  ///< of its root
};

/// Those that have used kBusyCpuNs (busy_programs.h).
std::vector<BusyBelow> find_busy_below(const BelowQuestion& question);

class ProgramsBelow {
 public:
  /// True once in kBelowLookNs, or more rarely, where the last question has its answer.
  bool is_due(uint64_t now_ns);
  void ask(BelowQuestion question);
  std::vector<BusyBelow> take();
  /// One whose Hello was refused is not silent: it is not found, nor what is below it. The first
  /// kMostRefused that live are known; a later worker knows none of them.
  void refused(pid_t pid);

 private:
  struct Found {
    std::vector<BusyBelow> programs;
    uint64_t cpu_ns;  ///< of the look
  };
  Beside<Found> look_;
  std::map<pid_t, uint64_t> refused_;
  uint64_t last_look_ns_ = 0;
  uint64_t rest_ns_ = kBelowLookNs;
};

}  // namespace aon::agent
