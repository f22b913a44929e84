#include "core/service/crash_log.h"

#include <aon/crash.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include "core/base/file.h"

namespace aon::service {
namespace {

constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  ///< PROC_PID_INIT_INO of Linux
constexpr int kMaxLines = 10'000;                 ///< of one read(): the log may grow meanwhile

/// Index of one of our libraries, kOwnLibraryCount for another.
uint32_t library_of(std::string_view module) {
  const auto* const end = kOwnLibraries + kOwnLibraryCount;
  return static_cast<uint32_t>(std::find(kOwnLibraries, end, module) - kOwnLibraries);
}

/// The number between the last '[' before `end` and its ']'. A program's name may hold brackets.
std::optional<pid_t> pid_before(std::string_view line, size_t end) {
  const size_t close = line.rfind(']', end);
  const size_t open = close == std::string_view::npos ? close : line.rfind('[', close);
  if (open == std::string_view::npos) return std::nullopt;
  pid_t pid = 0;
  const auto [rest, error] = std::from_chars(line.data() + open + 1, line.data() + close, pid);
  if (error != std::errc() || rest != line.data() + close || pid <= 0) return std::nullopt;
  return pid;
}

/// "1a2b,7f12+5000" and, in older kernels, "7f12+5000": the offset is said only in the first form.
uint64_t offset_in(std::string_view inside) {
  const size_t comma = inside.find(',');
  uint64_t offset = 0;
  if (comma != std::string_view::npos)
    std::from_chars(inside.data(), inside.data() + comma, offset, 16);
  return offset;
}

}  // namespace

std::string place_text(uint32_t place) {
  const uint32_t library = place >> kCrashOffsetBits;
  if (library == 0 || library > kOwnLibraryCount) return "";
  char text[64];
  std::snprintf(text, sizeof(text), "%s+0x%x", kOwnLibraries[library - 1],
                place & ((1u << kCrashOffsetBits) - 1));
  return text;
}

std::optional<Crash> crash_in(std::string_view line) {
  const size_t in = line.rfind(" in ");
  if (in == std::string_view::npos) return std::nullopt;
  const std::string_view rest = line.substr(in + 4);
  const size_t open = rest.find('[');
  const size_t close = rest.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  const uint32_t library = library_of(rest.substr(0, open));
  const std::optional<pid_t> pid = pid_before(line, in);
  if (!pid || library == kOwnLibraryCount) return std::nullopt;
  return Crash{*pid, crash_place(library, offset_in(rest.substr(open + 1, close - open - 1)))};
}

Result<CrashLog> CrashLog::open() {
  struct stat space {};
  if (::stat("/proc/self/ns/pid", &space) != 0 || space.st_ino != kFirstPidNamespace)
    return Error{Code::kUnavailable, "process ids of the kernel's log are not those seen here"};
  auto file = open_file("/dev/kmsg", O_RDONLY | O_NONBLOCK);
  if (!file) return file.error();
  if (::lseek(file->get(), 0, SEEK_END) < 0) return errno_error("cannot read", "/dev/kmsg", errno);
  return CrashLog(std::move(*file));
}

void CrashLog::skip() { (void)::lseek(file_.get(), 0, SEEK_END); }

std::vector<Crash> CrashLog::read() {
  std::vector<Crash> crashes;
  char line[8192];  // one record of the log a call
  for (int i = 0; i < kMaxLines; ++i) {
    const ssize_t bytes = ::read(file_.get(), line, sizeof(line));
    if (bytes < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: some were overwritten
    if (bytes <= 0) break;
    std::string_view text(line, static_cast<size_t>(bytes));
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (auto crash = crash_in(text.substr(0, end))) crashes.push_back(std::move(*crash));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return crashes;
}

}  // namespace aon::service
