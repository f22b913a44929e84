/// One look at a thread of the host: where it stands, without changing what it does.
///
/// A thread that is stopped is so for as long as its registers and the top of its stack take to
/// copy: some 50 us. Nobody stays stopped, whatever happens here: looks are taken by a thread of
/// their own (look_at_threads), and with the end of a tracer's thread the kernel lets go of all it
/// traces.
///
///     /proc/TID/stat D, Z   not asked to stop: it could not
///     in a system call      the stack is read beside the thread, from where it went in
///     in one of a few, in an open call of ours   PTRACE_SEIZE, PTRACE_INTERRUPT, registers,
///                           stack, PTRACE_DETACH: these go on as if nothing had been (signal(7))
///     running, in an open call of ours   the same; otherwise it is left alone
///
/// Other system calls may end with EINTR, or with a part of what was asked for, when a tracer stops
/// them. A process that is merely silent is never stopped: it may be about to make one.
///
/// Signals that arrive meanwhile are handed on. Without permission (another user, yama, seccomp, a
/// debugger that has it) the kernel's word for what it waits in is all, and the remark says why.
/// Thread: any.   Cost: 0.1 ms a thread; kLookNs where a thread cannot be stopped.
#pragma once

#include <aon/provider.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace aon::agent {

constexpr uint64_t kLookNs = 20'000'000;    ///< of one thread, then it is let go
constexpr uint64_t kLooksNs = 500'000'000;  ///< of all threads of one round
constexpr size_t kStackCopyBytes = 65536;

struct ThreadLook {
  pid_t pid = 0;
  pid_t tid = 0;
  bool may_stop = false;  ///< it is in a call that does not return
  bool has_registers = false;
  aon_stack_copy registers{};  ///< its `bytes` are not set: see `stack`
  std::vector<uint8_t> stack;  ///< from registers.sp on
  std::string remark;  ///< what it does in the kernel, and what was not allowed; may be empty
};

/// Fills in all of `looks`, of which pid and tid are set.
void look_at_threads(std::vector<ThreadLook>* looks);

/// Whether a system call (x86-64) goes on when its thread was stopped meanwhile. Unknown ones do
/// not.
bool outlives_stops(int64_t system_call);

}  // namespace aon::agent
