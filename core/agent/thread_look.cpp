#include "core/agent/thread_look.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "core/agent/proc.h"
#include "core/base/file.h"
#include "core/base/time.h"

namespace aon::agent {
namespace {

constexpr size_t kMaxTextBytes = 4096;
constexpr uint64_t kPollNs = 50'000;

std::string read(const ThreadLook& look, const char* name) {
  const std::string path =
      "/proc/" + std::to_string(look.pid) + "/task/" + std::to_string(look.tid) + "/" + name;
  const Result<std::string> text = read_text_file(path, kMaxTextBytes);
  return text ? *text : std::string();
}

/// Field 3 of its stat; '?' when it is gone.
char state_of(const ThreadLook& look) {
  const std::string text = read(look, "stat");
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '?' : text[name_end + 2];
}

void add_remark(ThreadLook* look, const std::string& text) {
  look->remark += (look->remark.empty() ? "" : "; ") + text;
}

/// What everybody of the user may read.
void note_kernel(ThreadLook* look, char state) {
  std::string waits = read(*look, "wchan");
  while (!waits.empty() && (waits.back() == '\n' || waits.back() == '\0')) waits.pop_back();
  if (!waits.empty() && waits != "0") {
    add_remark(look, "waits in the kernel, in " + waits);
  } else if (state == 'S' || state == 'D') {
    add_remark(look, "waits in the kernel");
  } else if (state == 'R') {
    add_remark(look, "runs");
  }
}

void note_refusal(ThreadLook* look, const char* what) {
  std::string text = std::string("its stack was not taken: ") + what + ": " + strerror(errno);
  if (errno == EPERM) {
    const auto scope = read_text_file("/proc/sys/kernel/yama/ptrace_scope", kMaxTextBytes);
    if (scope && !scope->empty() && (*scope)[0] != '0')
      text += " (kernel.yama.ptrace_scope=0 allows it)";
    else
      text += " (another user's, a debugger has it, or a container without ptrace)";
  }
  add_remark(look, text);
}

/// As much of the stack as there is.
bool copy_stack(ThreadLook* look) {
  look->stack.resize(kStackCopyBytes);
  iovec local{look->stack.data(), look->stack.size()};
  // One page each: what lies behind the end of the stack costs itself only.
  std::vector<iovec> remote;
  constexpr uint64_t kPage = 4096;
  uint64_t at = look->registers.sp;
  for (size_t left = kStackCopyBytes; left != 0;) {
    const size_t part = std::min<size_t>(left, kPage - at % kPage);
    remote.push_back({reinterpret_cast<void*>(at), part});
    at += part;
    left -= part;
  }
  const ssize_t count = process_vm_readv(look->pid, &local, 1, remote.data(), remote.size(), 0);
  if (count <= 0) {
    look->stack.clear();
    return false;
  }
  look->stack.resize(static_cast<size_t>(count));
  look->has_registers = true;
  return true;
}

#if defined(__x86_64__)

/// "NUMBER arguments SP PC", "running", or "" where it may not be read.
struct SystemCall {
  bool is_running = false;
  int64_t number = -1;
  uint64_t sp = 0;
  uint64_t ip = 0;
};
SystemCall system_call_of(const ThreadLook& look) {
  const std::string text = read(look, "syscall");
  SystemCall call;
  call.is_running = text.rfind("running", 0) == 0;
  unsigned long long sp = 0;
  unsigned long long ip = 0;
  long long number = -1;
  if (sscanf(text.c_str(), "%lld %*x %*x %*x %*x %*x %*x %llx %llx", &number, &sp, &ip) == 3) {
    call = {false, number, sp, ip};
  }
  return call;
}

bool take_registers(ThreadLook* look) {
  user_regs_struct regs{};
  iovec where{&regs, sizeof regs};
  if (ptrace(PTRACE_GETREGSET, look->tid, reinterpret_cast<void*>(NT_PRSTATUS), &where) != 0)
    return false;
  look->registers = {.bx = regs.rbx,
                     .bp = regs.rbp,
                     .sp = regs.rsp,
                     .r12 = regs.r12,
                     .r13 = regs.r13,
                     .r14 = regs.r14,
                     .r15 = regs.r15,
                     .ip = regs.rip,
                     .bytes = nullptr,
                     .byte_count = 0};
  return true;
}

/// Waits until the thread has stopped.   Returns its status, or -1.
int wait_for_stop(pid_t tid, uint64_t until_ns) {
  for (;;) {
    int status = 0;
    const pid_t got = waitpid(tid, &status, __WALL | WNOHANG | __WNOTHREAD);
    if (got == tid) return status;
    if (got < 0 || monotonic_ns() >= until_ns) return -1;
    const timespec moment = {0, kPollNs};
    nanosleep(&moment, nullptr);
  }
}

/// A signal on its way to the thread, which must reach it; 0: it was we who stopped it.
int signal_of(int status) { return status >> 16 != 0 ? 0 : WSTOPSIG(status); }

/// False: it has not stopped in time, and this thread has to end to let it go.
bool stop_and_look(ThreadLook* look) {
  if (ptrace(PTRACE_SEIZE, look->tid, nullptr, nullptr) != 0) {
    note_refusal(look, "ptrace");
    return true;
  }
  int status = -1;
  if (ptrace(PTRACE_INTERRUPT, look->tid, nullptr, nullptr) == 0)
    status = wait_for_stop(look->tid, monotonic_ns() + kLookNs);
  if (status < 0) {
    add_remark(look, "its stack was not taken: it did not stop in time");
    return false;
  }
  if (!WIFSTOPPED(status)) return true;  // it has ended
  const bool has_registers = take_registers(look);
  const bool is_copied = has_registers && copy_stack(look);
  const int error = errno;
  ptrace(PTRACE_DETACH, look->tid, nullptr, reinterpret_cast<void*>(intptr_t{signal_of(status)}));
  errno = error;
  if (!is_copied) note_refusal(look, has_registers ? "process_vm_readv" : "ptrace");
  // A thread that ended meanwhile is let go of by the end of ours.
  return has_registers;
}

bool look_at(ThreadLook* look) {
  const char state = state_of(*look);
  if (state == '?') {
    add_remark(look, "it has ended, or is in another PID namespace");
    return true;
  }
  note_kernel(look, state);
  if (state == 'D' || state == 'Z' || state == 'X') return true;
  if (state == 't' || state == 'T') add_remark(look, "it is stopped");
  const SystemCall call = system_call_of(*look);
  if (look->may_stop && (call.is_running || outlives_stops(call.number)))
    return stop_and_look(look);
  if (call.sp == 0) {
    add_remark(look, call.is_running ? "its stack was not taken: it runs, and may not be stopped"
                                     : "its stack was not taken: /proc/TID/syscall says nothing");
    return true;
  }
  look->registers = {};
  look->registers.sp = call.sp;
  look->registers.ip = call.ip;
  if (!copy_stack(look)) note_refusal(look, "process_vm_readv");
  return true;
}

#else

bool look_at(ThreadLook* look) {
  note_kernel(look, state_of(*look));
  add_remark(look, "its stack was not taken: this machine has no unwinder");
  return true;
}

#endif

}  // namespace

bool outlives_stops(int64_t system_call) {
#if defined(__x86_64__)
  constexpr int64_t kCalls[] = {SYS_futex,    SYS_poll,      SYS_ppoll,      SYS_select,
                                SYS_pselect6, SYS_nanosleep, SYS_wait4,      SYS_clock_nanosleep,
                                SYS_waitid,   SYS_pause,     SYS_sched_yield};
  return std::find(std::begin(kCalls), std::end(kCalls), system_call) != std::end(kCalls);
#else
  static_cast<void>(system_call);
  return false;
#endif
}

void look_at_threads(std::vector<ThreadLook>* looks) {
  size_t done_count = 0;
  // Where one does not stop, its thread ends, which lets go of it; another one goes on.
  const uint64_t end_ns = monotonic_ns() + kLooksNs;
  const auto work = [&] {
    while (done_count < looks->size()) {
      ThreadLook& look = (*looks)[done_count++];
      if (monotonic_ns() >= end_ns) {
        add_remark(&look, "not looked at: too many threads hang at once");
        continue;
      }
      if (!look_at(&look)) return;
    }
  };
  while (done_count < looks->size()) {
    try {
      std::thread(work).join();
    } catch (const std::system_error&) {
      while (done_count < looks->size())
        add_remark(&(*looks)[done_count++], "not looked at: no thread can be made (ulimit -u)");
    }
  }
}

}  // namespace aon::agent
