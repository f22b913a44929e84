#include "core/agent/crash_watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/log.h"
#include "core/spool/format.h"

namespace aon::agent {
namespace {

constexpr char kProvider[] = "recording";
constexpr size_t kMaxCrashes = 1000;
constexpr int kPauseMs = 5;
constexpr int kLateMs = 200;

/// Signals of a faulty instruction; also when nobody knows how the process ended.
bool may_be_fault(const ProcessCell& cell) {
  switch (cell.exit_signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
      return true;
    default:
      return cell.exit_signal == 0 && cell.exit_code < 0;
  }
}

}  // namespace

void CrashWatch::start() {
  auto log = service::CrashLog::open();
  if (log) log_ = std::move(*log);
}

void CrashWatch::process_ended(const ProcessCell& cell) {
  if (!may_be_fault(cell)) return;
  std::string place = service::place_text(cell.crash_place);
  if (place.empty()) place = place_elsewhere(cell);
  if (!place.empty()) report(cell, place);
}

void CrashWatch::read_crashes() {
  std::vector<service::Crash> more;
  if (log_) {
    more = log_->read();
  } else if (page_ != nullptr) {
    more = page_->crashes();
  }
  if (crashes_.size() + more.size() > kMaxCrashes) crashes_.clear();
  crashes_.insert(crashes_.end(), more.begin(), more.end());
}

/// The kernel writes the line before the process ends; the service reads it a moment later.
std::string CrashWatch::place_elsewhere(const ProcessCell& cell) {
  const bool may_come_late = !log_ && page_ != nullptr && page_->has_log() && page_->is_alive();
  for (int waited_ms = 0;; waited_ms += kPauseMs) {
    read_crashes();
    const auto found = std::find_if(crashes_.begin(), crashes_.end(),
                                    [&](const auto& crash) { return crash.pid == cell.pid; });
    if (found != crashes_.end()) {
      const std::string place = service::place_text(found->place);
      crashes_.erase(found);
      return place;
    }
    if (!may_come_late || waited_ms >= kLateMs) return "";
    const timespec pause{0, kPauseMs * 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

void CrashWatch::report(const ProcessCell& cell, const std::string& place) {
  const std::string program(cell.program);
  AON_LOG_ERROR("pid %d of %s died in AON's own code, %s", cell.pid, program.c_str(),
                place.c_str());
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(cell.process, DefinitionType::kProvider, state,
                 {kProvider,
                  program + " died in AON's own code, " + place +
                      ", and is not recorded from now on by this version",
                  "report it; to try again: aon avoid --remove " + program});
  add_to_list(program, place);
}

/// The grandchild is nobody's to wait for.
void CrashWatch::add_to_list(const std::string& program, const std::string& place) const {
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

void CrashWatch::left_alone(const std::string& program) {
  if (!left_alone_.insert(program).second) return;
  std::string programs;
  for (const std::string& one : left_alone_) programs += (programs.empty() ? "" : ", ") + one;
  ProviderDefinition state{};
  state.state = ProviderState::kDegraded;
  inbox_->define(spool::kNodeProcess, DefinitionType::kProvider, state,
                 {kProvider, "left alone, as it died in AON's own code before: " + programs,
                  "aon avoid --remove PROGRAM, to try again"});
}

}  // namespace aon::agent
