#include "launcher/say.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace aon::launcher {

void write_bounded(std::string_view text, int timeout_ms) {
  struct sigaction before {};
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  // One that waits is blocked, and of another one nothing is seen.
  sigset_t waiting;
  const bool is_waiting = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
  if (!is_waiting) sigaction(SIGPIPE, &ignored, &before);
  while (!text.empty()) {
    pollfd reader{STDERR_FILENO, POLLOUT, 0};
    if (poll(&reader, 1, timeout_ms) != 1 || (reader.revents & POLLOUT) == 0) break;
    // A pipe that is ready takes so much without waiting.
    const ssize_t taken =
        write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (taken <= 0) break;
    text.remove_prefix(static_cast<size_t>(taken));
  }
  if (is_waiting) return;
  // Again: while it is blocked, one was not ignored but waits.
  sigaction(SIGPIPE, &ignored, nullptr);
  sigaction(SIGPIPE, &before, nullptr);
}

void say(const std::string& text) { write_bounded("aon-run: " + text + "\n", kReaderMs); }

}  // namespace aon::launcher
