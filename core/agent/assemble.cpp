#include "core/agent/assemble.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/agent/proc.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/spool/files.h"

namespace aon::agent {
namespace {

constexpr int kTimeoutSeconds = 3600;
constexpr int kKillSeconds = 5;
constexpr int kExitBusy = 3;  ///< of aon finalize: the job is live, or another one assembles

std::vector<std::string> assemble_words(const Config& config, bool is_marked) {
  std::vector<std::string> words{"--from-agent"};
  if (is_marked) words.push_back("--node=" + config.node);
  if (config.arguments.options.drop_spool) words.push_back("--drop-spool");
  words.push_back("--otf2-locations=" +
                  std::to_string(config.arguments.options.otf2_location_count));
  if (config.arguments.options.nccl_as_mpi) words.push_back("--nccl-as-mpi");
  return words;
}

/// aon finalize OPTIONS DIR
pid_t start(const Config& config, std::vector<std::string> options) {
  const std::string& program = config.finalize_program;
  std::vector<std::string> words{program, "finalize"};
  std::move(options.begin(), options.end(), std::back_inserter(words));
  words.push_back(config.job_folder);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

/// Waits up to `seconds` for `pid`; true when it has ended.
bool wait_for(pid_t pid, int pidfd, int seconds, const std::function<void()>& beat) {
  for (int waited = 0; waited < seconds; waited += kLeaseBeatSeconds) {
    pollfd poll_fd{pidfd, POLLIN, 0};
    if (::poll(&poll_fd, 1, kLeaseBeatSeconds * 1000) > 0) return true;
    beat();
  }
  return ::kill(pid, 0) != 0;
}

/// Its exit status, as waitpid() has it; ended by us after kTimeoutSeconds.
int finish(pid_t pid, const std::function<void()>& beat) {
  const UniqueFd pidfd(proc::open_pidfd(pid));
  if (!wait_for(pid, pidfd.get(), kTimeoutSeconds, beat)) {
    ::kill(pid, SIGTERM);
    if (!wait_for(pid, pidfd.get(), kKillSeconds, beat)) ::kill(pid, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

AssembleOutcome assemble(const Config& config, const std::function<void()>& beat, bool is_marked) {
  if (config.arguments.options.no_assemble)
    return {false, "not assembled, as told; run: aon finalize " + config.job_folder};
  if (config.finalize_program.empty() || ::access(config.finalize_program.c_str(), X_OK) != 0)
    return {false, "no " + config.finalize_program + "; run: aon finalize " + config.job_folder};
  const pid_t pid = start(config, assemble_words(config, is_marked));
  if (pid < 0) return {false, std::string("cannot start aon finalize: ") + strerror(errno)};
  const int status = finish(pid, beat);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, ""};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitBusy)
    return {false, "another process works on " + config.job_folder, true};
  return {false, "aon finalize failed; run: aon finalize " + config.job_folder};
}

bool is_share_wanted(const Config& config, uint64_t* last_plan) {
  struct stat about {};
  const std::string plan = config.job_folder + "/" + spool::kSharePlan;
  if (::stat(plan.c_str(), &about) != 0 || about.st_uid != ::geteuid()) return false;
  const uint64_t number = about.st_ino + static_cast<uint64_t>(about.st_mtim.tv_nsec);
  if (number == *last_plan) return false;
  *last_plan = number;
  return true;
}

void do_share(const Config& config, const std::function<void()>& beat,
              const std::function<bool()>& is_over) {
  const pid_t pid = start(config, {"--share", "--node=" + config.node});
  if (pid < 0) return;
  bool is_ended = false;
  const int status = finish(pid, [&] {
    beat();
    if (is_ended || !is_over()) return;
    is_ended = true;
    ::kill(pid, SIGKILL);  // also one that does not come back by itself
  });
  if (is_ended) return;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    AON_LOG_WARNING("this node's share of the archive failed; another one does it");
}

}  // namespace aon::agent
