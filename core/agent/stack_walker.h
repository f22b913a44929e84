/// Call chains of processes of the node from copies of their stacks (core/unwind), for providers.
///
/// What is mapped in a process is read from /proc/PID/maps at the first sample and again when a
/// chain leaves what is known, at most once a second. Files are opened in the process's mount
/// namespace while it lives; one that was put in the place of what is mapped is not read. The log
/// tells whose code is therefore gone through by frame pointers.
/// Thread: the housekeeping thread.
/// Cost: about 1 us a frame; 100 us for a look at /proc/PID/maps and 1 us for each file in it.
#pragma once

#include <aon/provider.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/unwind/unwinder.h"

namespace aon::agent {

/// The executable lines of a /proc/PID/maps; paths of files have `root` before them, code that lies
/// in none (made at run time, [vdso]) has no path.
std::vector<unwind::Mapping> parse_executable_maps(const std::string& text,
                                                   const std::string& root);

/// What is mapped executable in a process, with the files as they are now; empty: it has ended.
std::vector<unwind::Mapping> executable_mappings(pid_t pid);

class StackWalker {
 public:
  void add_process(uint32_t process, pid_t pid) { processes_[process] = {pid, 0, {}}; }
  void remove_process(uint32_t process) { processes_.erase(process); }

  /// As aon_core_api::unwind. `now_ns` of any clock that does not go back.
  uint32_t unwind(uint32_t process, const aon_stack_copy& copy, std::span<uint64_t> frames,
                  uint64_t now_ns);
  /// "path+0xoffset" of an address, in the file; "0x..." where nothing is known to be mapped.
  std::string place_of(uint32_t process, uint64_t address) const;

 private:
  struct Watched {
    pid_t pid;
    uint64_t read_ns;  ///< when the mappings were read; 0 never
    std::vector<unwind::Mapping> mappings;
  };
  static void read_mappings(Watched* watched, uint64_t now_ns);
  void tell_failures();

  std::map<uint32_t, Watched> processes_;
  unwind::Unwinder unwinder_;
  size_t seen_failures_ = 0;  ///< of the unwinder's
  size_t told_failures_ = 0;
};

}  // namespace aon::agent
