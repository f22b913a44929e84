#include "launcher/waiter.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "launcher/descriptors.h"

namespace aon::launcher {

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

Status start_waiter(int kept, const std::function<void()>& wait) {
  const pid_t between = fork();
  if (between < 0) return Error{Code::kUnavailable, std::string("cannot fork: ") + strerror(errno)};
  if (between > 0) {
    while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
    return {};
  }
  setsid();
  if (fork() != 0) _exit(0);
  keep_descriptors({kept});
  wait();
  _exit(0);
}

bool wait_for_descriptor(int fd, int timeout_ms) {
  const int64_t deadline_ms = now_ms() + timeout_ms;
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    const int64_t left_ms = deadline_ms - now_ms();
    if (left_ms <= 0) return false;
    if (poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000))) > 0) return true;
  }
}

}  // namespace aon::launcher
