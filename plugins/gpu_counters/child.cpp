#include "gpu_counters/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

namespace aon::gpu_counters {
namespace {

constexpr int kStepMs = 20;
constexpr size_t kReadBytes = size_t{1} << 16;
constexpr int kMaxDrains = 64;                      ///< reads in one step
constexpr size_t kMaxReadBytes = size_t{16} << 20;  ///< at a time

/// Variables that would profile the helper, or hide GPUs of the other ranks from it.
bool is_kept(std::string_view variable) {
  for (const std::string_view name :
       {"LD_PRELOAD=", "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "NCCL_PROFILER_PLUGIN=",
        "CUDA_VISIBLE_DEVICES="}) {
    if (variable.starts_with(name)) return false;
  }
  return true;
}

void close_one(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void pause_ms(int ms) {
  const timespec pause = {0, ms * 1'000'000L};
  nanosleep(&pause, nullptr);
}

}  // namespace

int Child::start(const std::vector<std::string>& arguments) {
  int input[2] = {-1, -1};
  int output[2] = {-1, -1};
  if (pipe2(input, O_CLOEXEC) != 0) return errno;
  if (pipe2(output, O_CLOEXEC) != 0) {
    const int error = errno;
    close_one(&input[0]);
    close_one(&input[1]);
    return error;
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (is_kept(*variable)) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  close_one(&input[0]);
  close_one(&output[1]);
  input_ = input[1];
  output_ = output[0];
  if (error != 0) {
    pid_ = -1;
    close_one(&input_);
    close_one(&output_);
    return error;
  }
  fcntl(output_, F_SETFL, O_NONBLOCK);
  return 0;
}

bool Child::reap(bool waits) {
  if (pid_ < 0) return true;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, waits ? 0 : WNOHANG);
  if (ended == 0) return false;
  pid_ = -1;
  if (ended < 0) {
    ending_ = "it is gone";  // somebody else has waited for it
  } else if (WIFSIGNALED(status)) {
    ending_ = "signal " + std::to_string(WTERMSIG(status));
  } else {
    ending_ = "exit code " + std::to_string(WEXITSTATUS(status));
  }
  return true;
}

/// A bounded part: it may write without end.
void Child::drain(std::string* rest) {
  char buffer[kReadBytes];
  for (int i = 0; output_ >= 0 && i < kMaxDrains; ++i) {
    const ssize_t count = ::read(output_, buffer, sizeof buffer);
    if (count <= 0) return;
    if (rest != nullptr && rest->size() < kMaxReadBytes)
      rest->append(buffer, static_cast<size_t>(count));
  }
}

bool Child::read(std::string* bytes) {
  if (output_ < 0) return false;
  char buffer[kReadBytes];
  while (bytes->size() < kMaxReadBytes) {
    const ssize_t count = ::read(output_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) break;
    bytes->append(buffer, static_cast<size_t>(count));
  }
  if (bytes->size() >= kMaxReadBytes) return true;
  stop();
  return false;
}

void Child::stop(std::string* rest) {
  close_one(&input_);
  // Its output is read away: it may be writing.
  for (int waited_ms = 0; waited_ms < kEndMs && !reap(false); waited_ms += kStepMs) {
    drain(rest);
    pause_ms(kStepMs);
  }
  drain(rest);
  close_one(&output_);
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  for (int waited_ms = 0; waited_ms < kEndMs && !reap(false); waited_ms += kStepMs)
    pause_ms(kStepMs);
  // Not even that, in the driver: the kernel ends it once it comes back.
  if (pid_ >= 0) ending_ = "it hangs in the driver";
  pid_ = -1;
}

}  // namespace aon::gpu_counters
