/// What the kernel says about processes: how one ended, how much CPU time it used.
/// Thread: any.   Cost: 5 to 20 us a call.   Errors: -1 or 0 where nothing is known.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace aon::agent::proc {

/// How a process ended: exit code, or signal.
struct ExitStatus {
  int exit_code = -1;  ///< -1 unknown, or killed by `signal`
  int signal = 0;
};

/// What a wait status (waitpid()) of an ended process says.
ExitStatus decode(int wait_status) noexcept;

/// Opens a pidfd of `pid`; -1 when it is gone.
int open_pidfd(pid_t pid) noexcept;
/// True when the process behind `pidfd` has ended.
bool has_ended(int pidfd) noexcept;
/// True when it has ended or is about to: its descriptors are closed some time before has_ended()
/// says so. Of one that runs on without its first thread it is true, too.
bool is_exiting(int pidfd, pid_t pid) noexcept;
/// True when nobody is at the other end of a socket any more.
bool has_hung_up(int socket) noexcept;

/// The status of an ended process: from its zombie while nobody has reaped it, else from the pidfd
/// (PIDFD_GET_INFO, Linux 6.15). Nothing: neither knows, or not yet.
std::optional<ExitStatus> exit_status(int pidfd, pid_t pid, uint64_t start_time_ticks) noexcept;

/// User and system time of a process, or of its zombie; 0 unknown. Cost: 1 us, for it is asked for
/// each rank ten times a second; its line in /proc takes ten times as long, by thread.
uint64_t cpu_time_ns(pid_t pid) noexcept;
/// Field 22 of /proc/PID/stat; 0 unknown.
uint64_t start_time_ticks(pid_t pid) noexcept;
/// Parent of a process, or of its zombie; 0 unknown.
pid_t parent_of(pid_t pid) noexcept;
/// What the threads of a process have started and nobody has reaped: some of those that come or go
/// meanwhile are left out, and what threads behind the 256th have started.
std::vector<pid_t> children_of(pid_t pid);
/// True while the process that began at `start_time_ticks` has `pid` and a thread that runs: not of
/// a zombie, which waits for its parent.
bool is_running(pid_t pid, uint64_t start_time_ticks) noexcept;
/// Resident bytes of this process.
uint64_t own_resident_bytes() noexcept;
/// CPU time of this process.
uint64_t own_cpu_time_ns() noexcept;

}  // namespace aon::agent::proc
