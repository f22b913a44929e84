#include "core/service/crash_log.h"

#include <aon/crash.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

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

constexpr size_t kMaxName = 15;  ///< bytes of a task's, whatever they are

/// /dev/kmsg has \x.. for a byte that is not printable.
size_t letters_of_byte(std::string_view rest) { return rest.starts_with("\\x") ? 4 : 1; }

/// Takes `text` off the front of `line`; "*" stands for a hexadecimal number. False: it is not
/// there.
bool take(std::string_view* line, std::string_view text) {
  std::string_view rest = *line;
  for (const char wanted : text) {
    size_t length = 1;
    if (wanted == '*') {
      length = std::min(rest.find_first_not_of("0123456789abcdef"), rest.size());
      if (length == 0) return false;
    } else if (rest.empty() || rest.front() != wanted) {
      return false;
    }
    rest.remove_prefix(length);
  }
  *line = rest;
  return true;
}

/// Behind the name and its number: what happened, up to " in ". Trap names are words.
bool take_fault(std::string_view* line) {
  if (line->empty() || line->front() == ':')
    return take(line, ": segfault at * ip * sp * error * in ");
  const size_t end = line->find(" ip:");
  if (end == std::string_view::npos) return false;
  for (const char letter : line->substr(0, end)) {
    if (letter != ' ' && std::isalpha(static_cast<unsigned char>(letter)) == 0) return false;
  }
  line->remove_prefix(end);
  return take(line, " ip:* sp:* error:* in ");
}

/// "NAME[4711]" and what happened, from the left: names of tasks and of files may hold anything,
/// and a name is too short to hold all of it.
std::optional<pid_t> take_head(std::string_view* line) {
  size_t next = 0;
  for (size_t bytes = 0; bytes <= kMaxName && next < line->size(); ++bytes) {
    const size_t open = next;
    next += letters_of_byte(line->substr(open));
    if ((*line)[open] != '[') continue;
    std::string_view rest = line->substr(open + 1);
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    if (error != std::errc() || pid <= 0) continue;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    if (!take(&rest, "]") || !take_fault(&rest)) continue;
    *line = rest;
    return pid;
  }
  return std::nullopt;
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
  // /dev/kmsg: "level,number,time,flags;text".
  if (const size_t text = line.find(';');
      text < 64 && std::isdigit(static_cast<unsigned char>(line[0])) != 0)
    line.remove_prefix(text + 1);
  if (line.starts_with("process '")) return std::nullopt;  // of a file, whatever its name holds
  take(&line, "traps: ");
  const std::optional<pid_t> pid = take_head(&line);
  const size_t open = line.find('[');
  if (!pid || open == std::string_view::npos) return std::nullopt;
  const uint32_t library = library_of(line.substr(0, open));
  const size_t close = line.find(']', open);
  if (library == kOwnLibraryCount || close == std::string_view::npos) return std::nullopt;
  return Crash{*pid, crash_place(library, offset_in(line.substr(open + 1, close - open - 1)))};
}

bool pids_are_the_kernels() {
  struct stat space {};
  return ::stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == kFirstPidNamespace;
}

bool processes_are_hidden(std::string_view mounts) {
  bool is_hidden = false;
  while (!mounts.empty()) {
    const size_t end = std::min(mounts.find('\n'), mounts.size());
    const std::string_view line = mounts.substr(0, end);
    mounts.remove_prefix(std::min(end + 1, mounts.size()));
    // "36 35 0:4 / /proc rw shared:1 - proc proc rw,hidepid=invisible": the last one is on top.
    if (line.find(" / /proc ") == std::string_view::npos) continue;
    const size_t option = line.rfind("hidepid=");
    const std::string_view value =
        option == std::string_view::npos ? "off" : line.substr(option + strlen("hidepid="));
    is_hidden = !value.starts_with("off") && !value.starts_with('0');
  }
  return is_hidden;
}

Result<CrashLog> CrashLog::open() {
  if (!pids_are_the_kernels())
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
      if (auto crash = crash_in(text.substr(0, end))) crashes.push_back(*crash);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return crashes;
}

}  // namespace aon::service
