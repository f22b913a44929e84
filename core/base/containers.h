/// Which of the containers of a node a process is in: those with a PID namespace of their own have
/// each a process 1, and those with a mount namespace may have each a /tmp.
/// Thread: any.   Cost: a readlink(); lives_beside_us() looks at every process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace aon {

/// This node's name as process ids need it beside them: HOST, or HOST@NUMBER in a PID namespace
/// that is not the machine's.
std::string host_of_pids();

/// Whether the process that began at `start_time_ticks` and has `host_of_pids` lives; nullopt where
/// that cannot be seen: only the machine's own namespace has the processes of all, and those of
/// other users do not show theirs.
std::optional<bool> lives_beside_us(const std::string& host_of_pids, uint64_t start_time_ticks);

/// True when `pid`, of this PID namespace, is known to see other mounts than we do.
bool sees_other_mounts(int32_t pid);

}  // namespace aon
