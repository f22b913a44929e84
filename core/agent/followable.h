/// Whom the agent follows without a word from the program itself: what the kernel counts, samples
/// and tells of it. Programs that AON leaves alone stay alone.
/// Thread: any.   Cost: four files of /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "core/base/options.h"

namespace aon::agent {

/// Which of the programs that aon-run registers.
enum class Following {
  kNobody,  ///< no provider would have anything to tell of them
  kBusy,    ///< those that compute and have said no Hello (busy_programs.h)
  kAll      ///< from the start: MPI calls are not wanted, so they say none
};
Following following_of(const Options& options);

/// Tells what `pid` runs now from what it runs after an exec(); 0 where it does not show itself.
/// Cost: 20 us, and no lock of its memory. May wait for an exec() of it.
uint64_t image_of(pid_t pid);

/// What a look at a program has found.
struct Followable {
  std::string program;         ///< its path; empty: it is not to be followed
  bool is_left_alone = false;  ///< nor is this one, which is on the list, and that is said
};

/// The program that `pid` runs. Not to be followed is one of `left_alone`, one with AON_DISABLE in
/// its environment or another agent's socket than `socket` (an aon-run with a directory of its own
/// has taken it), one that is privileged (set-uid and the like), runs as another user, or does not
/// show itself. May wait for a lock of its memory.
Followable followable_program(pid_t pid, std::span<const std::string> left_alone,
                              const std::string& socket = {});

/// Whether pids that `pid` tells are those that are seen here.
bool shares_pid_namespace(pid_t pid);

}  // namespace aon::agent
