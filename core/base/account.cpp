#include "core/base/account.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "core/base/file.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"

namespace aon {
namespace {

constexpr size_t kMaxAnswerBytes = 4096;
constexpr int kNoSuchKey = 2;  ///< of getent
constexpr int kKillMs = 100;   ///< for one that was killed to end

Error unknown(const char* why) {
  return {Code::kUnavailable, "the account of uid " + std::to_string(geteuid()) + ": " + why};
}

/// Everything until the end of the file. False: it did not come in time.
bool read_answer(int fd, int64_t deadline_ms, std::string* answer) {
  for (;;) {
    pollfd readable{fd, POLLIN, 0};
    const auto left_ms = static_cast<int>(std::max<int64_t>(0, deadline_ms - now_ms()));
    const int ready = poll(&readable, 1, left_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || answer->size() > kMaxAnswerBytes) return false;
    char buffer[512];
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    answer->append(buffer, static_cast<size_t>(got));
  }
}

/// Of a child that has nothing more to say; it is killed at `deadline_ms`. -1: by a signal, or
/// nobody knows (a process that hangs in the kernel is not waited for).
int exit_code(pid_t child, int64_t deadline_ms) {
  for (bool is_killed = false;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ended < 0 && errno != EINTR) return -1;
    if (now_ms() >= deadline_ms) {
      if (is_killed) return -1;
      kill(child, SIGKILL);
      is_killed = true;
      deadline_ms = now_ms() + kKillMs;
    }
    const timespec pause{0, 500'000};
    nanosleep(&pause, nullptr);
  }
}

[[noreturn]] void become(const char* const* words, int output) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  unsetenv("LD_PRELOAD");  // ours, the user's
  execv(words[0], const_cast<char* const*>(words));
  _exit(127);
}

Result<Account> look_up() {
  const Result<std::string> local = read_text_file("/etc/passwd");
  if (local) {
    Result<Account> found = find_account(*local, geteuid());
    if (found) return found;
  }
  const std::string uid = std::to_string(geteuid());
  const char* const words[] = {"/usr/bin/getent", "passwd", uid.c_str(), nullptr};
  return ask_account(words, kAccountWaitMs);
}

}  // namespace

Result<Account> find_account(std::string_view lines, unsigned uid) {
  const std::string number = std::to_string(uid);
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    std::array<std::string_view, 7> fields{};  // name:password:uid:gid:comment:home:shell
    size_t count = 0;
    for (; count < fields.size(); ++count) {
      const size_t colon = std::min(line.find(':'), line.size());
      fields[count] = line.substr(0, colon);
      line.remove_prefix(std::min(colon + 1, line.size()));
    }
    if (fields[2] == number && !fields[0].empty())
      return Account{std::string(fields[0]), std::string(fields[5])};
  }
  return Error{Code::kNotFound, "there is no account with uid " + number};
}

Result<Account> ask_account(const char* const* words, int wait_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return unknown("no pipe");
  UniqueFd output(ends[0]);
  UniqueFd input(ends[1]);
  const int64_t deadline_ms = now_ms() + wait_ms;
  const pid_t child = fork();
  if (child < 0) return unknown("no process to ask for it");
  if (child == 0) become(words, input.get());
  input.reset();
  std::string answer;
  const bool is_in_time = read_answer(output.get(), deadline_ms, &answer);
  if (!is_in_time) kill(child, SIGKILL);
  if (exit_code(child, std::max(deadline_ms, now_ms() + kKillMs)) == kNoSuchKey)
    return Error{Code::kNotFound, "there is no account with this uid"};
  if (!is_in_time) return unknown("nobody said so in time");
  Result<Account> found = find_account(answer, geteuid());
  if (!found) return unknown("nobody could say so");
  return found;
}

const Result<Account>& account() {
  static const Result<Account>& found = *new Result<Account>(look_up());
  return found;
}

Result<std::string> home_folder() {
  const char* home = secure_getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home);
  const Result<Account>& found = account();
  if (!found) return found.error();
  if (found->home.empty() || found->home[0] != '/')
    return Error{Code::kNotFound, "this user has no home"};
  return found->home;
}

}  // namespace aon
