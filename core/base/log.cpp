#include "core/base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "core/base/file.h"

namespace aon {
namespace {

constexpr size_t kMaxLineBytes = 1024;
constexpr off_t kMaxFileBytes = 16 << 20;  ///< what goes wrong may do so again and again
constexpr char kLastLine[] = "the log is full: nothing more is written\n";

std::atomic<int> g_level{static_cast<int>(LogLevel::kWarning)};
std::atomic<int> g_fd{STDERR_FILENO};
std::atomic<const char*> g_name{"aon"};

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "log";
}

/// Of a file that set_log_file() has opened.
off_t file_bytes(int fd) {
  struct stat status {};
  const bool is_own = fd > STDERR_FILENO && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  return is_own ? status.st_size : 0;
}

}  // namespace

void set_log_level(LogLevel level) noexcept {
  g_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) noexcept {
  return static_cast<int>(level) <= g_level.load(std::memory_order_relaxed);
}

void set_log_name(const char* name) noexcept { g_name.store(name, std::memory_order_relaxed); }

Status set_log_file(const char* path) {
  Result<UniqueFd> file = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!file) return file.error();
  const int previous = g_fd.exchange(file->release(), std::memory_order_relaxed);
  if (previous > STDERR_FILENO) ::close(previous);
  return {};
}

int log_descriptor() noexcept { return g_fd.load(std::memory_order_relaxed); }

void log_line(LogLevel level, const char* format, ...) noexcept {
  const int saved_errno = errno;
  const int fd = g_fd.load(std::memory_order_relaxed);
  const off_t held_bytes = file_bytes(fd);
  char line[kMaxLineBytes];
  const int head =
      std::snprintf(line, sizeof(line), "%s[%d] %s: ", g_name.load(std::memory_order_relaxed),
                    static_cast<int>(getpid()), level_name(level));
  size_t bytes = head > 0 ? static_cast<size_t>(head) : 0;
  if (bytes > sizeof(line) - 2) bytes = sizeof(line) - 2;
  va_list arguments;
  va_start(arguments, format);
  const int text = std::vsnprintf(line + bytes, sizeof(line) - bytes - 1, format, arguments);
  va_end(arguments);
  if (text > 0) bytes += static_cast<size_t>(text);
  if (bytes > sizeof(line) - 2) bytes = sizeof(line) - 2;
  line[bytes++] = '\n';
  // A log that cannot be written has nobody to tell.
  [[maybe_unused]] ssize_t ignored = 0;
  if (held_bytes < kMaxFileBytes) ignored = ::write(fd, line, bytes);
  if (held_bytes < kMaxFileBytes && held_bytes + static_cast<off_t>(bytes) >= kMaxFileBytes)
    ignored = ::write(fd, kLastLine, sizeof(kLastLine) - 1);
  errno = saved_errno;
}

}  // namespace aon
