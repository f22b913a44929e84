/// Which processes died in AON's own code: the kernel's log has a line for a signal that nobody
/// handles, with the library that the instruction was in.
///
///     app[4711]: segfault at 8 ip 00007f.. sp 00007f.. error 4 in libaon-mpi.so[1a2b,7f..+5000]
///     traps: app[4711] trap invalid opcode ip:7f.. sp:7f.. error:0 in libaon.so[1a2b,7f..+5000]
///
/// /dev/kmsg needs kernel.dmesg_restrict=0 or CAP_SYSLOG, and debug.exception-trace=1 (the default
/// on x86). A crash in the C library that our code called is not seen as ours.
/// Thread: one.   Cost: none until read(); then a system call per line since.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::service {

struct Crash {
  pid_t tid;       ///< of the thread
  uint32_t place;  ///< aon/crash.h
};

/// "libaon-mpi.so+0x1a2b"; "" of no place, or of one that cannot be.
std::string place_text(uint32_t place);

/// Whether process ids here are those of the kernel's log.
bool pids_are_the_kernels();

/// Whether /proc among `mounts` (/proc/self/mountinfo) shows a user other users' processes not even
/// by number: then nobody else may tell him of them either.
bool processes_are_hidden(std::string_view mounts);

/// Of one line of the log; nullopt when it is about something else, or not about our libraries.
std::optional<Crash> crash_in(std::string_view line);

class CrashLog {
 public:
  /// From now on.   Errors: kUnavailable with the reason; a process id in the log is that of the
  /// first PID namespace, so another one has none.
  static Result<CrashLog> open();
  /// From the beginning of `file` (tests).
  explicit CrashLog(UniqueFd file) : file_(std::move(file)) {}

  /// Lets go of what came so far.
  void skip();
  /// Becomes readable with every line.
  int fd() const { return file_.get(); }
  /// Crashes in our libraries since the last call.
  std::vector<Crash> read();

 private:
  UniqueFd file_;
};

}  // namespace aon::service
