#include "core/agent/assemble.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "core/agent/proc.h"
#include "core/base/file.h"
#include "core/base/lease.h"
#include "core/base/log.h"
#include "core/base/owner.h"
#include "core/base/unique_fd.h"
#include "core/spool/files.h"

namespace aon::agent {
namespace {

constexpr int kTimeoutSeconds = 3600;
constexpr int kKillSeconds = 5;
constexpr int kLookMs = 50;
constexpr int kExitBusy = 3;    ///< of aon finalize: the job is live, or another one assembles
constexpr int kExitInPart = 6;  ///< a writer failed, the others' files and the ledger are there

std::vector<std::string> assemble_words(const Config& config, bool is_marked) {
  std::vector<std::string> words{"--from-agent"};
  if (is_marked) words.push_back("--node=" + config.node);
  if (config.arguments.options.drop_spool) words.push_back("--drop-spool");
  words.push_back("--otf2-locations=" +
                  std::to_string(config.arguments.options.otf2_location_count));
  if (config.arguments.options.nccl_as_mpi) words.push_back("--nccl-as-mpi");
  return words;
}

/// aon finalize OPTIONS DIR, which says on `errors` what is wrong; -1: nobody wants to know.
pid_t start(const Config& config, std::vector<std::string> options, int errors = -1) {
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
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  ::execv(program.c_str(), argv.data());
  ::_exit(127);
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  const int options = WEXITED | WNOHANG | WNOWAIT;
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, options) != 0 || info.si_pid == pid;
}

/// False: what it does is not wanted any more.
using Beat = std::function<bool()>;

/// Waits up to `seconds` for `pid`; true when it has ended. Where nobody gives out a pidfd (Linux
/// before 5.3, filters of containers) it is looked at again and again.
bool wait_for(pid_t pid, int pidfd, int seconds, const Beat& beat) {
  const int step_ms = pidfd >= 0 ? kLeaseBeatSeconds * 1000 : kLookMs;
  for (int waited_ms = 0; waited_ms < seconds * 1000; waited_ms += step_ms) {
    pollfd poll_fd{pidfd, POLLIN, 0};
    ::poll(&poll_fd, 1, step_ms);
    if (has_ended(pid)) return true;
    if (waited_ms % (kLeaseBeatSeconds * 1000) == 0 && !beat()) break;
  }
  return false;
}

/// Its exit status, as waitpid() has it; ended by us after kTimeoutSeconds. nullopt: nothing ends
/// it, for it hangs in the kernel, in a sync to a server that is gone, say.
std::optional<int> finish(pid_t pid, const Beat& beat) {
  const UniqueFd pidfd(proc::open_pidfd(pid));
  if (!wait_for(pid, pidfd.get(), kTimeoutSeconds, beat)) {
    for (const int signal : {SIGTERM, SIGKILL}) {
      ::kill(pid, signal);
      if (wait_for(pid, pidfd.get(), kKillSeconds, [] { return true; })) break;
    }
  }
  if (!has_ended(pid)) return std::nullopt;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

constexpr size_t kReasonBytes = 600;

/// The last line in `errors`, which is what it ended with.
std::string reason(int status, int errors) {
  if (WIFSIGNALED(status)) {
    rlimit limit{};
    const bool is_limited = ::getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_max != RLIM_INFINITY;
    return "signal " + std::to_string(WTERMSIG(status)) +
           (is_limited ? ", maybe for the limit of CPU time (ulimit -H -t)" : "");
  }
  const off_t end = ::lseek(errors, 0, SEEK_END);
  std::string text(std::clamp<off_t>(end, 0, kReasonBytes), '\0');
  const Result<size_t> got =
      read_at(errors, text.data(), text.size(), static_cast<uint64_t>(end) - text.size());
  text.resize(got ? *got : 0);
  while (text.ends_with('\n')) text.pop_back();
  text.erase(0, text.rfind('\n') + 1);
  constexpr std::string_view kName = "aon finalize: ";
  if (text.starts_with(kName)) text.erase(0, kName.size());
  return text.empty() ? "exit code " + std::to_string(WEXITSTATUS(status)) : text;
}

bool is_own_plan(const std::string& job_folder) {
  const std::string shares = job_folder + "/" + spool::kSharesFolder;
  const Result<UniqueFd> folder = open_file(shares, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const Result<UniqueFd> plan =
      open_file(job_folder + "/" + spool::kSharePlan, O_RDONLY | O_NOFOLLOW);
  return folder && plan && is_of_this_user(folder->get(), plan->get());
}

}  // namespace

AssembleOutcome assemble(const Config& config, const std::function<void()>& beat, bool is_marked) {
  if (config.arguments.options.no_assemble)
    return {false, "not assembled, as told; run: aon finalize " + config.job_folder};
  if (::access(config.job_folder.c_str(), F_OK) != 0 && errno == ENOENT)
    return {false, config.job_folder +
                       " was removed or moved while the program ran: nothing is "
                       "written; if it was moved, run aon finalize where it is"};
  if (config.finalize_program.empty() || ::access(config.finalize_program.c_str(), X_OK) != 0)
    return {false, "no " + config.finalize_program + "; run: aon finalize " + config.job_folder};
  const UniqueFd errors(::memfd_create("aon-finalize", MFD_CLOEXEC));
  const pid_t pid = start(config, assemble_words(config, is_marked), errors.get());
  if (pid < 0) return {false, std::string("cannot start aon finalize: ") + strerror(errno)};
  const std::optional<int> ended = finish(pid, [&] {
    beat();
    return true;
  });
  if (!ended)
    return {false,
            "aon finalize hangs in the kernel: is the file system of " + config.job_folder +
                " there? When it is, run: aon finalize " + config.job_folder,
            false, true};
  const int status = *ended;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, ""};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitBusy)
    return {false, "another process works on " + config.job_folder, true};
  const std::string text = reason(status, errors.get());
  AON_LOG_WARNING("aon finalize: %s", text.c_str());
  // The summary warns of it.
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitInPart) return {true, ""};
  return {false, "aon finalize failed: " + text + "; run: aon finalize " + config.job_folder};
}

bool is_share_wanted(const Config& config, uint64_t* last_plan) {
  struct stat about {};
  const std::string plan = config.job_folder + "/" + spool::kSharePlan;
  if (::stat(plan.c_str(), &about) != 0) return false;
  const uint64_t number = about.st_ino + static_cast<uint64_t>(about.st_mtim.tv_nsec);
  if (number == *last_plan || !is_own_plan(config.job_folder)) return false;
  *last_plan = number;
  return true;
}

void do_share(const Config& config, const std::function<void()>& beat,
              const std::function<bool()>& is_over) {
  const pid_t pid = start(config, {"--share", "--node=" + config.node});
  if (pid < 0) return;
  bool is_unwanted = false;
  const std::optional<int> status = finish(pid, [&] {
    beat();
    is_unwanted = is_unwanted || is_over();
    if (is_unwanted) ::kill(pid, SIGKILL);  // also one that does not come back by itself
    return !is_unwanted;
  });
  if (is_unwanted) return;
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    AON_LOG_WARNING("this node's share of the archive failed; another one does it");
}

}  // namespace aon::agent
