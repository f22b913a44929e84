#include "core/agent/crash_watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/agent/timing.h"
#include "core/base/log.h"

namespace aon::agent {
namespace {

constexpr char kProvider[] = "recording";
constexpr size_t kMaxCrashes = 1000;
constexpr uint64_t kLateNs = 500'000'000;
constexpr uint64_t kKeptNs = 5'000'000'000;  ///< numbers of processes are used again
constexpr long kPauseNs = 10'000'000;

/// Signals of a faulty instruction.
bool is_fault(int32_t number) {
  return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
         number == SIGTRAP;
}

/// A program that runs programs of others: what died is a script, and all of them would be avoided.
bool is_interpreter(const std::string& program) {
  const std::string name = program.substr(program.rfind('/') + 1);
  for (const char* known : {"python", "pypy", "julia", "java", "Rscript", "perl", "ruby", "lua",
                            "octave", "matlab", "MATLAB", "node", "bash", "dash", "zsh", "tclsh"}) {
    if (name.rfind(known, 0) == 0) return true;
  }
  return name == "R" || name == "sh";
}

}  // namespace

void CrashWatch::start() {
  auto log = service::CrashLog::open();
  if (log) log_ = std::move(*log);
}

void CrashWatch::use_service(service::PageReader* page) {
  const bool is_useful = page != nullptr && page->has_log() && service::pids_are_the_kernels();
  page_ = is_useful ? page : nullptr;
}

void CrashWatch::process_ended(const ProcessCell& cell, std::vector<int32_t> tids,
                               uint64_t now_ns) {
  const bool is_unknown = cell.exit_signal == 0 && cell.exit_code < 0;
  if (!is_fault(cell.exit_signal) && !is_unknown) return;
  tids.push_back(cell.pid);
  const Waiting ended{cell.process, cell.program.get(), std::move(tids), now_ns + kLateNs};
  if (const std::string place = service::place_text(cell.crash_place); !place.empty()) {
    report(ended.process, ended.program, place);
    return;
  }
  if (cell.is_elsewhere != 0) return;  // its threads have other numbers in the log
  read_crashes(now_ns);
  if (find_in_log(ended)) return;
  const bool may_come_late = !log_ && page_ != nullptr && page_->is_alive();
  if (may_come_late && !is_unknown) waiting_.push_back(ended);
}

void CrashWatch::tick(uint64_t now_ns) {
  if (waiting_.empty()) return;
  read_crashes(now_ns);
  const auto is_done = [&](const Waiting& one) {
    return find_in_log(one) || now_ns >= one.until_ns;
  };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_done), waiting_.end());
}

void CrashWatch::finish() {
  while (!waiting_.empty()) {
    tick(monotonic_ns());
    const timespec pause{0, kPauseNs};
    if (!waiting_.empty()) nanosleep(&pause, nullptr);
  }
}

/// The kernel writes the line before the process ends; the service reads it a moment later.
void CrashWatch::read_crashes(uint64_t now_ns) {
  std::vector<service::Crash> more;
  if (log_) {
    more = log_->read();
  } else if (page_ != nullptr) {
    more = page_->crashes();
  }
  const auto is_old = [&](const Seen& seen) { return now_ns - seen.at_ns > kKeptNs; };
  crashes_.erase(std::remove_if(crashes_.begin(), crashes_.end(), is_old), crashes_.end());
  for (const service::Crash& crash : more) {
    if (crashes_.size() < kMaxCrashes) crashes_.push_back({crash, now_ns});
  }
}

/// True: there is a line about one of its threads, and it was told.
bool CrashWatch::find_in_log(const Waiting& ended) {
  const auto found = std::find_if(crashes_.begin(), crashes_.end(), [&](const Seen& seen) {
    return std::find(ended.tids.begin(), ended.tids.end(), seen.crash.tid) != ended.tids.end();
  });
  if (found == crashes_.end()) return false;
  const std::string place = service::place_text(found->crash.place);
  crashes_.erase(found);
  report(ended.process, ended.program, place);
  return true;
}

void CrashWatch::report(uint32_t process, const std::string& program, const std::string& place) {
  AON_LOG_ERROR("process %u, %s, died in AON's own code, %s", process, program.c_str(),
                place.c_str());
  const bool is_listed =
      !is_interpreter(program) && program.find(" (deleted)") == std::string::npos;
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(process, DefinitionType::kProvider, state,
                 {kProvider,
                  program + " died in AON's own code, " + place +
                      ", or of a bad pointer that it passed there" +
                      (is_listed ? ", and is put on the list of programs to leave alone" : ""),
                  "report it, if it lives with AON_DISABLE=1" +
                      (is_listed ? "; to try again: aon avoid --remove " + program : "")});
  if (is_listed && added_.insert(program).second) add_to_list(program, place);
}

/// The grandchild is nobody's to wait for.
void CrashWatch::add_to_list(const std::string& program, const std::string& place) {
  const std::string& tool = config_.finalize_program;
  const char* const words[] = {tool.c_str(), "avoid",         "--place", place.c_str(),
                               "--add",      program.c_str(), nullptr};
  if (tool.empty() || program.empty()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::fork() == 0) ::execv(tool.c_str(), const_cast<char* const*>(words));
    ::_exit(0);
  }
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace aon::agent
