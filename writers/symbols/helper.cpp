#include "writers/symbols/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/fork_alone.h"
#include "core/base/time.h"

namespace aon::symbols {

namespace {

/// Writable private memory of this process: what RLIMIT_DATA counts.
uint64_t data_bytes() {
  uint64_t pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "re"); file != nullptr) {
    unsigned long long value = 0;
    if (std::fscanf(file, "%*u %*u %*u %*u %*u %llu", &value) == 1) pages = value;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void lower_limit(__rlimit_resource resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(value, limit.rlim_max);
  setrlimit(resource, &limit);
}

/// First thing in the helper: it owns nothing of its parent and leaves nothing behind.
void confine(const HelperLimits& limits, uint64_t parent_data_bytes, int* pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  lower_limit(RLIMIT_CORE, 0);
  lower_limit(RLIMIT_CPU, limits.seconds + 1);
  lower_limit(RLIMIT_DATA, parent_data_bytes + limits.memory_bytes);
  constexpr int kPipe = 3;
  if (*pipe != kPipe) {
    dup2(*pipe, kPipe);
    *pipe = kPipe;
  }
  close_range(kPipe + 1, ~0u, 0);
}

}  // namespace

Result<Helper> Helper::start(const HelperLimits& limits, const std::function<void(int)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Error{Code::kUnavailable, std::string("symbols: pipe: ") + std::strerror(errno)};
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const uint64_t parent_data_bytes = data_bytes();
  const pid_t pid = fork_alone();
  if (pid < 0)
    return Error{Code::kUnavailable, std::string("symbols: fork: ") + std::strerror(errno)};
  if (pid == 0) {
    int pipe = write_end.release();
    confine(limits, parent_data_bytes, &pipe);
    try {
      work(pipe);
    } catch (const std::bad_alloc&) {
      _exit(kOutOfMemoryExit);
    }
    _exit(0);
  }
  return Helper(pid, std::move(read_end), limits.seconds);
}

Helper::Helper(pid_t pid, UniqueFd pipe, uint32_t seconds)
    : pid_(pid),
      pipe_(std::move(pipe)),
      deadline_ms_(now_ms() + int64_t{seconds} * 1000),
      seconds_(seconds) {}

Helper::Helper(Helper&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pipe_(std::move(other.pipe_)),
      deadline_ms_(other.deadline_ms_),
      seconds_(other.seconds_),
      is_late_(other.is_late_) {}

Helper::~Helper() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  end();
}

size_t Helper::read(void* buffer, size_t bytes) {
  for (;;) {
    const int64_t left_ms = deadline_ms_ - now_ms();
    pollfd wait{pipe_.get(), POLLIN, 0};
    const int ready = left_ms > 0 ? poll(&wait, 1, static_cast<int>(left_ms)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      is_late_ = true;
      if (pid_ > 0) kill(pid_, SIGKILL);
      return 0;
    }
    const ssize_t got = ::read(pipe_.get(), buffer, bytes);
    if (got < 0 && errno == EINTR) continue;
    return got < 0 ? 0 : static_cast<size_t>(got);
  }
}

std::string Helper::end() {
  pipe_.reset();  // a helper that still writes ends with EPIPE
  int status = 0;
  pid_t got = 0;
  do got = waitpid(pid_, &status, 0);
  while (got < 0 && errno == EINTR);
  const bool was_waited_for = got == pid_;
  pid_ = -1;
  if (is_late_) return "took longer than " + std::to_string(seconds_) + " s";
  if (!was_waited_for) return {};  // somebody else took its status: its output says the rest
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "crashed: signal " + std::to_string(signal) + ", " + strsignal(signal);
  }
  if (WEXITSTATUS(status) == kOutOfMemoryExit) return "ran out of memory";
  if (WEXITSTATUS(status) != 0)
    return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  return {};
}

}  // namespace aon::symbols
