/// How much memory the processes of this control group may use.
///
/// Sources: Linux, Documentation/admin-guide/cgroup-v2.rst (memory.max) and cgroup-v1/memory.rst
/// (memory.limit_in_bytes). The smallest limit of the group and its ancestors holds; v1 is mounted
/// where systemd and Slurm mount it.
/// Thread: any.   Cost: a few small files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace aon::agent {

/// Gives the text of a file; nullopt where there is none.
using ReadText = std::function<std::optional<std::string>(const std::string& path)>;

/// The smallest limit that holds for this process; `machine_bytes` without one.
uint64_t memory_limit_bytes(uint64_t machine_bytes, const ReadText& read);

/// The same of this process and machine.
uint64_t memory_limit_bytes();

}  // namespace aon::agent
