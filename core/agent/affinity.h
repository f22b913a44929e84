/// On which cores the agent runs: all that its cgroup allows, less those that bound ranks use, as
/// long as any is left. A child of a bound rank would else sit on that rank's only core.
/// Thread: leave_cores() moves all threads of the process.   Cost: two syscalls per thread.
#pragma once

#include <sched.h>

namespace aon::agent::affinity {

/// Undoes an inherited binding.
void reset() noexcept;

/// Leaves the cores of a process that is bound to `cores`; goes back to all when no other is left.
/// A process that may run on all of ours is not bound. Thread: one.
void leave_cores(const cpu_set_t& cores) noexcept;
/// Those of process `pid`.
void leave_cores_of(pid_t pid) noexcept;

}  // namespace aon::agent::affinity
