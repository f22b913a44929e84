#include "launcher/group_witness.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/file.h"
#include "launcher/descriptors.h"

namespace aon::launcher {
namespace {

/// The kernel goes on to the next member of the group while we are already awake.
constexpr long kSpreadNs = 1'000'000;

[[noreturn]] void stand_by(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  close_all_descriptors();
  for (;;) pause();
}

/// Pending signals of the whole process as a bit mask, from /proc/PID/status.
uint64_t pending_signals(pid_t pid) {
  const Result<std::string> text = read_text_file("/proc/" + std::to_string(pid) + "/status");
  if (!text) return 0;
  const size_t place = text->find("\nShdPnd:");
  return place == std::string::npos ? 0 : strtoull(text->c_str() + place + 8, nullptr, 16);
}

}  // namespace

void GroupWitness::start() {
  const pid_t self = getpid();
  pid_ = fork();
  if (pid_ == 0) stand_by(self);
}

void GroupWitness::stop() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool GroupWitness::saw(int number) {
  if (pid_ <= 0) return false;
  const timespec spread{0, kSpreadNs};
  nanosleep(&spread, nullptr);
  const uint64_t bit = uint64_t{1} << (number - 1);
  const bool was_earlier = (earlier_ & bit) != 0;
  const bool is_pending = (pending_signals(pid_) & bit) != 0;
  earlier_ &= ~bit;
  if (!is_pending) return was_earlier;
  GroupWitness old = *this;
  start();  // before the old one is asked for the last time: what comes now, one of them has
  earlier_ |= pending_signals(old.pid_) & ~bit;
  old.stop();
  return true;
}

}  // namespace aon::launcher
