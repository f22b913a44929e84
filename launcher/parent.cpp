#include "launcher/parent.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include "core/base/file.h"
#include "core/base/time.h"
#include "launcher/descriptors.h"
#include "launcher/program.h"

namespace aon::launcher {
namespace {

constexpr long kWakerPeriodNs = 50'000'000;
/// For longer nobody who was told of a signal waits for a processor to judge it.
constexpr int64_t kDoubtMs = 2'000;

constexpr auto kTimers = std::to_array({ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF});

/// What aon-run was started with. Timers, as of who calls alarm() before it, are kept by exec() and
/// not by fork().
struct Inherited {
  sigset_t mask;
  struct sigaction child_end;
  std::array<itimerval, kTimers.size()> timers;

  void restore() const {
    for (size_t i = 0; i < kTimers.size(); ++i) setitimer(kTimers[i], &timers[i], nullptr);
    sigaction(SIGCHLD, &child_end, nullptr);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
  }
};

/// Blocks all signals and stops the timers. Where the end of a child is ignored, as some daemons
/// start their jobs, nobody would be told of it.
Inherited take_inherited() {
  Inherited before{};
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before.mask);
  struct sigaction told {};
  told.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &told, &before.child_end);
  constexpr itimerval kNone{};
  for (size_t i = 0; i < kTimers.size(); ++i) setitimer(kTimers[i], &kNone, &before.timers[i]);
  return before;
}

/// Whether the kernel sends it to all of a group, as for a key of the terminal. Others are for one
/// process: of a timer, or that the terminal is gone, which it tells a session's first one alone.
bool is_of_terminal(int number) {
  constexpr int kNumbers[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};
  return std::find(std::begin(kNumbers), std::end(kNumbers), number) != std::end(kNumbers);
}

[[noreturn]] void run_child(const std::vector<std::string>& words,
                            const std::function<void()>& prepare, pid_t parent,
                            const Inherited& before) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(128 + SIGKILL);  // it died before the line above
  prepare();
  before.restore();
  _exit(execute(words));
}

void send(pid_t target, const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  if (info.ssi_code != SI_QUEUE) {
    kill(target, number);
    return;
  }
  sigval value{};
  value.sival_ptr = reinterpret_cast<void*>(info.ssi_ptr);
  sigqueue(target, number, value);
}

/// Letter of /proc/PID/stat; 0 where it cannot be read.
char state_of(pid_t pid) {
  const Result<std::string> text = read_text_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text ? text->rfind(')') : std::string::npos;
  return name_end != std::string::npos && name_end + 2 < text->size() ? (*text)[name_end + 2] : 0;
}

/// Continues `parent` when `program` is not stopped any more: who continued or killed it need not
/// know of us. In a group of its own, which is not stopped with theirs.
[[noreturn]] void wake_with(pid_t program, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  close_all_descriptors();
  const timespec pause{0, kWakerPeriodNs};
  while (getppid() == parent) {
    nanosleep(&pause, nullptr);
    if (state_of(program) != 'T' && state_of(parent) == 'T') kill(parent, SIGCONT);
  }
  _exit(0);
}

/// What has happened to a child, and was not taken yet.
std::optional<siginfo_t> see_change() {
  siginfo_t change{};
  constexpr int kOptions = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT;
  if (waitid(P_ALL, 0, &change, kOptions) != 0 || change.si_pid == 0) return std::nullopt;
  return change;
}

bool is_end(const siginfo_t& change) {
  return change.si_code == CLD_EXITED || change.si_code == CLD_KILLED ||
         change.si_code == CLD_DUMPED;
}

/// A child that was stopped may have ended meanwhile: that is seen the next time.
void take_change(const siginfo_t& change) {
  const int kind = is_end(change) ? WEXITED : WSTOPPED | WCONTINUED;
  waitid(P_PID, static_cast<id_t>(change.si_pid), nullptr, kind | WNOHANG);
}

/// As waitpid() tells an end.
int wait_status_of(const siginfo_t& end) {
  if (end.si_code == CLD_EXITED) return W_EXITCODE(end.si_status & 0xff, 0);
  return W_EXITCODE(0, end.si_status) | (end.si_code == CLD_DUMPED ? WCOREFLAG : 0);
}

bool asks_to_end(uint32_t number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

}  // namespace

Result<Parent> Parent::start(const std::vector<std::string>& words,
                             const std::function<void()>& prepare) {
  const Inherited before = take_inherited();
  sigset_t all;
  sigfillset(&all);
  Parent parent;
  parent.signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = getpid();
  if (parent.signal_fd_ >= 0) {
    parent.witness_.start();  // before anything that the program sends to the group
    parent.child_ = fork();
  }
  if (parent.child_ == 0) run_child(words, prepare, self, before);
  if (parent.child_ > 0) return parent;
  const int error_number = errno;
  parent.witness_.stop();
  if (parent.signal_fd_ >= 0) close(parent.signal_fd_);
  before.restore();
  return Error{Code::kUnavailable, std::string("cannot fork: ") + strerror(error_number)};
}

void Parent::close_descriptors(int kept) { keep_descriptors({kept, signal_fd_}); }

void Parent::forward(const signalfd_siginfo& info) {
  const auto sender = static_cast<pid_t>(info.ssi_pid);
  if (sender == waker_) return;
  const auto number = static_cast<int>(info.ssi_signo);
  // The terminal's are asked for, too: the witness has them, and is to keep none for the next one.
  const bool was_seen = info.ssi_code != SI_QUEUE && witness_.saw(number);
  const bool is_for_group = was_seen || (info.ssi_code == SI_KERNEL && is_of_terminal(number));
  if (!is_for_group) {
    if (sender == child_ && may_be_for_group(number)) return;
    const pid_t receiver = sender == child_ ? getppid() : child_;
    if (receiver > 0) send(receiver, info);  // else it is outside of this container
    return;
  }
  if (sender == child_) {
    group_number_ = number;
    group_ms_ = now_ms();
    return;
  }
  // A program that left for a group of its own gets what is meant for the group there.
  const pid_t group = getpgid(child_);
  if (info.ssi_code != SI_KERNEL && group > 0 && group != getpgrp()) send(-group, info);
}

void Parent::stop_with_program() {
  const pid_t self = getpid();
  waker_ = fork();
  if (waker_ == 0) wake_with(child_, self);
  raise(SIGSTOP);
  if (waker_ < 0) return;
  kill(waker_, SIGKILL);
  waitpid(waker_, nullptr, 0);
}

/// Whether a signal of the program that its group was not seen to get may be the group's all the
/// same: without a witness, and the second of two that came while the first was judged. Such ones
/// stay here, for they must not reach whoever is outside of the group.
bool Parent::may_be_for_group(int number) const {
  return witness_.pid() <= 0 || (number == group_number_ && now_ms() - group_ms_ <= kDoubtMs);
}

/// A program that ends may have sent its parent signals of higher numbers than SIGCHLD.
void Parent::forward_last_words() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (static_cast<pid_t>(info.ssi_pid) == child_) {
      forward(info);
    } else {
      asks_to_end_ |= asks_to_end(info.ssi_signo);
    }
  }
}

ProgramEnd Parent::wait_for_program(const std::function<void(const ProgramEnd&)>& tell) {
  for (;;) {
    signalfd_siginfo info{};
    pollfd waiting{signal_fd_, POLLIN, 0};
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) {
      poll(&waiting, 1, -1);
      continue;
    }
    if (info.ssi_signo != SIGCHLD) {
      forward(info);
      continue;
    }
    while (const std::optional<siginfo_t> change = see_change()) {
      const bool is_programs = change->si_pid == child_;  // else the agent's or the witness's
      const bool has_ended = is_programs && is_end(*change);
      const ProgramEnd end{has_ended ? wait_status_of(*change) : 0};
      if (has_ended && tell) tell(end);
      take_change(*change);
      // Somebody has killed it: its number may soon be another's.
      if (change->si_pid == witness_.pid() && is_end(*change)) witness_.start();
      if (is_programs && change->si_code == CLD_STOPPED) stop_with_program();
      if (!has_ended) continue;
      forward_last_words();
      witness_.stop();
      return end;
    }
  }
}

bool Parent::wait_for_input(int fd, int timeout_ms) {
  const int64_t deadline_ms = now_ms() + timeout_ms;
  while (!asks_to_end_) {
    pollfd waiting[2] = {{fd, POLLIN, 0}, {signal_fd_, POLLIN, 0}};
    const int64_t left_ms = deadline_ms - now_ms();
    if (left_ms <= 0) return false;
    if (poll(waiting, 2, static_cast<int>(std::min<int64_t>(left_ms, 60'000))) < 0) continue;
    if (waiting[0].revents != 0) return true;
    signalfd_siginfo info{};
    while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      if (asks_to_end(info.ssi_signo)) return false;
    }
  }
  return false;
}

void end_like(const ProgramEnd& end) {
  if (WIFEXITED(end.wait_status)) _exit(WEXITSTATUS(end.wait_status));
  const int number = WTERMSIG(end.wait_status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // the program has left its own core file
  prctl(PR_SET_DUMPABLE, 0);
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  _exit(128 + number);
}

}  // namespace aon::launcher
