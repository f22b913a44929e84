#include "core/agent/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/file.h"

namespace aon::agent::proc {
namespace {

/// As in linux/pidfd.h of 6.15 and later, which Debian 12 lacks.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup_id;
  uint32_t pid;
  uint32_t tgid;
  uint32_t ppid;
  uint32_t credentials[8];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr size_t kMaxChildrenBytes = 64 << 10;  ///< some 9000 pids
constexpr uint64_t kPidfdInfoExit = 1u << 3;
constexpr uint32_t kIsExiting = 0x4;  // PF_EXITING of linux/sched.h
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// Fields of /proc/PID/stat behind the name, the first one being field 3.
struct StatFields {
  char state = 0;  ///< of its first thread
  pid_t parent = 0;
  uint32_t flags = 0;  ///< of its first thread, too
  int thread_count = 0;
  uint64_t start_time = 0;
  int exit_code = 0;
};

size_t read_small(const char* path, char* out, size_t room) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t bytes = ::read(fd, out, room - 1);
  ::close(fd);
  out[bytes > 0 ? bytes : 0] = '\0';
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

std::optional<StatFields> read_stat(pid_t pid) noexcept {
  char path[64];
  char text[1024];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  if (read_small(path, text, sizeof(text)) == 0) return std::nullopt;
  char* at = std::strrchr(text, ')');
  if (at == nullptr) return std::nullopt;
  StatFields fields;
  int field = 2;
  char* save = nullptr;
  for (char* word = ::strtok_r(at + 1, " ", &save); word != nullptr;
       word = ::strtok_r(nullptr, " ", &save)) {
    ++field;
    if (field == 3) fields.state = *word;
    if (field == 4) fields.parent = std::atoi(word);
    if (field == 9) fields.flags = static_cast<uint32_t>(std::strtoul(word, nullptr, 10));
    if (field == 20) fields.thread_count = std::atoi(word);
    if (field == 22) fields.start_time = std::strtoull(word, nullptr, 10);
    if (field == 52) fields.exit_code = std::atoi(word);
  }
  return fields;
}

}  // namespace

ExitStatus decode(int wait_status) noexcept {
  ExitStatus status;
  status.signal = wait_status & 0x7f;
  status.exit_code = status.signal == 0 ? (wait_status >> 8) & 0xff : -1;
  return status;
}

int open_pidfd(pid_t pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool has_ended(int pidfd) noexcept {
  pollfd poll_fd{pidfd, POLLIN, 0};
  return ::poll(&poll_fd, 1, 0) > 0;
}

bool is_exiting(int pidfd, pid_t pid) noexcept {
  const auto stat = read_stat(pid);
  const bool is_marked =
      stat && (stat->state == 'Z' || stat->state == 'X' || (stat->flags & kIsExiting) != 0);
  return is_marked || has_ended(pidfd);  // in this order: else `pid` may be another's by now
}

bool has_hung_up(int socket) noexcept {
  pollfd poll_fd{socket, POLLRDHUP, 0};
  return ::poll(&poll_fd, 1, 0) > 0;
}

std::optional<ExitStatus> exit_status(int pidfd, pid_t pid, uint64_t start_time) noexcept {
  const auto stat = read_stat(pid);
  if (stat && stat->start_time == start_time && stat->state == 'Z') return decode(stat->exit_code);
  PidfdInfo info{};
  info.mask = kPidfdInfoExit;
  if (::ioctl(pidfd, kPidfdGetInfo, &info) != 0 || (info.mask & kPidfdInfoExit) == 0)
    return std::nullopt;
  return decode(info.exit_code);
}

/// Its clock as clock_getcpuclockid() has it, which asks the kernel whether there is one.
uint64_t cpu_time_ns(pid_t pid) noexcept {
  constexpr clockid_t kProcessClock = 2;  // CPUCLOCK_SCHED, of all threads
  const clockid_t clock = static_cast<clockid_t>(~static_cast<uint32_t>(pid) << 3) | kProcessClock;
  timespec now{};
  if (pid <= 0 || ::clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t start_time_ticks(pid_t pid) noexcept {
  const auto stat = read_stat(pid);
  return stat ? stat->start_time : 0;
}

pid_t parent_of(pid_t pid) noexcept {
  const auto stat = read_stat(pid);
  return stat ? stat->parent : 0;
}

std::vector<pid_t> children_of(pid_t pid) {
  constexpr int kMostThreads = 256;
  std::vector<pid_t> children;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/task", pid);
  std::error_code error;
  std::filesystem::directory_iterator thread(path, error);
  for (int i = 0; !error && i < kMostThreads && thread != std::filesystem::directory_iterator();
       ++i, thread.increment(error)) {
    const Result<std::string> text = read_text_file(thread->path() / "children", kMaxChildrenBytes);
    if (!text) continue;
    const char* at = text->c_str();
    char* end = nullptr;
    for (long child = 0; (child = std::strtol(at, &end, 10)) > 0; at = end)
      children.push_back(static_cast<pid_t>(child));
  }
  return children;
}

bool is_running(pid_t pid, uint64_t start_time_ticks) noexcept {
  const auto stat = read_stat(pid);
  if (!stat || stat->start_time != start_time_ticks) return false;
  const bool is_dead = stat->state == 'Z' || stat->state == 'X';
  return !is_dead || stat->thread_count > 1;
}

uint64_t own_resident_bytes() noexcept {
  char text[128];
  if (read_small("/proc/self/statm", text, sizeof(text)) == 0) return 0;
  char* end = nullptr;
  std::strtoull(text, &end, 10);
  return std::strtoull(end, nullptr, 10) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t own_cpu_time_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace aon::agent::proc
