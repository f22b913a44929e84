/// On which cores the agent runs: all that its cgroup allows, less those that bound ranks use, as
/// long as any is left. A child of a bound rank would else sit on that rank's only core.
/// Thread: leave_cores() moves all threads of the process.   Cost: two syscalls per thread.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

namespace aon::agent::affinity {

/// How many cores are in a list as in /proc ("0-3,8"); those of the machine where it is none.
uint32_t count_cpus(const std::string& list) noexcept;

/// Undoes an inherited binding.
void reset() noexcept;

/// Leaves the cores of a process that is bound to `cores`; goes back to all when no other is left.
/// A process that may run on all of ours is not bound. Thread: one.
void leave_cores(const cpu_set_t& cores) noexcept;
/// Those of process `pid`.
void leave_cores_of(pid_t pid) noexcept;

}  // namespace aon::agent::affinity
