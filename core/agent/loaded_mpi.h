/// Which MPI library a process has loaded, by its file's name: where no call of it was recorded,
/// the calls go past the preloaded library, or there are none.
/// Thread: any.   Cost: /proc/PID/maps, 0.1 to 2 ms.   Errors: a process that does not show it has
/// loaded none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/agent/beside.h"

namespace aon::agent {

/// As libmpi.so.40; empty: none.
std::string mpi_library_of(pid_t pid);
/// The same of what /proc/PID/maps says.
std::string mpi_library_in(std::string_view maps);

/// The same of many, by their number: asked when one has used a second of CPU time, then twice
/// that, and so on, until it has loaded one. The answers come later, for a look may hang.
/// Thread: one.
class MpiLibraries {
 public:
  /// Asks for `process` with the next look() where it is due.
  void want(uint32_t process, pid_t pid, uint64_t cpu_ns);
  void look();
  std::string of(uint32_t process) const;  ///< empty: none so far
  void forget(uint32_t process) {
    found_.erase(process);
    due_.erase(process);
  }

 private:
  struct Found {
    uint64_t due_ns;  ///< of its CPU time
    std::string library;
  };
  std::map<uint32_t, Found> found_;
  std::map<uint32_t, pid_t> due_;
  Beside<std::map<uint32_t, std::string>> look_;
};

}  // namespace aon::agent
