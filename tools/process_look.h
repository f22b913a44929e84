/// Which processes have one of some libraries loaded, or one of some names, as far as the kernel
/// shows them to this user. What is not shown is counted, never an error.
///
/// Reading another process's memory map or arguments waits while that one stands still in the
/// kernel with its lock, so that is done in a process of its own: one that does not answer is left
/// out, and the next one goes on behind it.
///
///     this process: status of all --> reader: maps and arguments -- lines --> this process
///                                     stands still for kPatience: killed, another one
///
/// Thread: one, of a process without others (it forks).   Cost: 20 us a process, 0.1 ms one of this
/// user; `limit` and kPatience at most.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aon::tools {

struct Wanted {
  bool (*library)(std::string_view file_name);
  bool (*process)(std::string_view name);  ///< as in /proc/PID/comm: 15 characters
};

struct SeenProcess {
  pid_t pid = 0;
  uid_t user = 0;
  std::string name;
  std::string arguments;  ///< with blanks between them; only of those with a wanted name
  std::vector<std::string> libraries;  ///< file names of the wanted ones, each once, sorted
};

struct ProcessLook {
  std::vector<SeenProcess> processes;  ///< those with a wanted library or name, by pid
  uint32_t read_count = 0;             ///< processes whose libraries were read
  uint32_t closed_count = 0;           ///< those of which this user may not know their libraries
  std::vector<pid_t> stuck;            ///< those that did not answer
  uint32_t unread_count = 0;           ///< those that there was no time for
};

constexpr std::chrono::milliseconds kPatience{500};

/// `proc` is /proc, or a folder that looks like it.
ProcessLook look_at_processes(const std::string& proc, const Wanted& wanted,
                              std::chrono::milliseconds limit);

}  // namespace aon::tools
