#include "launcher/waiter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/agent/protocol.h"
#include "core/base/packet.h"
#include "core/base/time.h"
#include "launcher/agent_link.h"
#include "launcher/descriptors.h"

namespace aon::launcher {
namespace {

/// Stderr becomes `fd`, or nothing. Nobody waits for a rank by the descriptor that it was.
void change_stderr(int fd) {
  const UniqueFd null(fd < 0 ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1);
  dup2(fd < 0 ? null.get() : fd, STDERR_FILENO);
}

/// False: none was there.
bool follow_notice(int notices) {
  uint8_t byte = 0;
  std::vector<UniqueFd> lent;
  const ssize_t got = receive_packet(notices, {&byte, 1}, &lent, MSG_DONTWAIT);
  if (got < 0 && errno != EMSGSIZE) return false;
  const auto notice = static_cast<agent::WaiterNotice>(got == 1 ? byte : 0);
  if (notice == agent::WaiterNotice::kTakenBack) change_stderr(-1);
  if (notice == agent::WaiterNotice::kLent && lent.size() == 1) change_stderr(lent[0].get());
  return true;
}

}  // namespace

bool launcher_watches_socket(const std::function<const char*(const char*)>& environment) {
  const char* text = environment("PMI_FD");
  char* end = nullptr;
  const long fd = text != nullptr ? strtol(text, &end, 10) : -1;
  if (text == nullptr || end == text || *end != '\0' || fd <= STDERR_FILENO || fd > INT_MAX)
    return false;
  struct stat status {};
  if (fstat(static_cast<int>(fd), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  return environment("SLURM_PROCID") == nullptr || environment("HYDI_CONTROL_FD") != nullptr;
}

Result<UniqueFd> open_notices(const std::string& agent_socket) {
  return bind_socket(SOCK_DGRAM, agent_socket + agent::kWaiterSuffix);
}

Status start_waiter(const std::vector<int>& kept, const std::function<void()>& wait) {
  const pid_t between = fork();
  if (between < 0) return Error{Code::kUnavailable, std::string("cannot fork: ") + strerror(errno)};
  if (between > 0) {
    while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
    return {};
  }
  setsid();
  if (fork() != 0) _exit(0);
  keep_descriptors(kept);
  wait();
  _exit(0);
}

bool wait_for_descriptor(int fd, int notices, int program, int timeout_ms) {
  int64_t deadline_ms = program < 0 ? now_ms() + timeout_ms : INT64_MAX;
  for (;;) {
    pollfd waiting[3] = {{fd, POLLIN, 0}, {notices, POLLIN, 0}, {program, POLLIN, 0}};
    const int64_t left_ms = deadline_ms - now_ms();
    if (left_ms <= 0) return false;
    if (poll(waiting, 3, static_cast<int>(std::min<int64_t>(left_ms, 60'000))) <= 0) continue;
    // What ranks have said comes first: the last of them may just have lent its stderr.
    if (waiting[1].revents != 0) {
      while (follow_notice(notices)) continue;
    }
    if (waiting[0].revents != 0) return true;
    if (waiting[2].revents == 0) continue;
    deadline_ms = now_ms() + timeout_ms;
    program = -1;
  }
}

}  // namespace aon::launcher
