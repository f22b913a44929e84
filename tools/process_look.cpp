#include "tools/process_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "core/base/file.h"
#include "core/base/unique_fd.h"
#include "tools/job_folder.h"

namespace aon::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPollPeriod{20};
constexpr size_t kMaxMapBytes = 16u << 20;
constexpr size_t kMaxArgumentBytes = 4096;
constexpr char kBetween = '\t';

/// Written by the reader, read by its parent.   Observable: how far the reader is.
struct Progress {
  std::atomic<uint32_t> next;   ///< the process that the reader is at; those before it are done
  std::atomic<bool> has_begun;  ///< the reader
  std::atomic<uint32_t> read_count;
  std::atomic<uint32_t> closed_count;
};

/// What separates fields and lines is in no name and no path of ours; of others' names nothing is
/// printed that a terminal would obey.
std::string plain(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return printable(std::move(result));
}

std::string_view value_of(std::string_view status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = status.substr(at + key.size());
  rest = rest.substr(0, rest.find('\n'));
  const size_t begin = rest.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
}

template <class Number>
bool to_number(std::string_view text, Number* number) {
  return std::from_chars(text.data(), text.data() + text.size(), *number).ec == std::errc();
}

/// Threads of the kernel and zombies have no memory, and so no libraries.
bool read_status(const std::string& proc, pid_t pid, SeenProcess* process) {
  const auto status = read_text_file(proc + "/" + std::to_string(pid) + "/status", 8192);
  if (!status || status->find("\nVmSize:") == std::string::npos) return false;
  process->pid = pid;
  process->name = plain(value_of(*status, "Name:"));
  return to_number(value_of(*status, "\nUid:"), &process->user);
}

/// The latest ones first: where time is up these are more likely to be a job's.
std::vector<SeenProcess> list_processes(const std::string& proc, Clock::time_point end,
                                        uint32_t* unread_count) {
  std::vector<pid_t> pids;
  DIR* folder = opendir(proc.c_str());
  if (folder == nullptr) return {};
  while (const dirent* entry = readdir(folder)) {
    pid_t pid = 0;
    if (to_number(entry->d_name, &pid) && pid > 0) pids.push_back(pid);
  }
  closedir(folder);
  std::sort(pids.rbegin(), pids.rend());
  std::vector<SeenProcess> result;
  for (size_t i = 0; i < pids.size(); ++i) {
    if (Clock::now() > end) {
      *unread_count += static_cast<uint32_t>(pids.size() - i);
      break;
    }
    SeenProcess process;
    if (read_status(proc, pids[i], &process)) result.push_back(std::move(process));
  }
  return result;
}

/// Calls `on_line` for each line, of kMaxMapBytes at most. Returns errno of opening it.
template <class OnLine>
int read_lines(const std::string& path, OnLine on_line) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return errno;
  char bytes[65536];
  std::string rest;
  for (size_t total = 0; total < kMaxMapBytes;) {
    const ssize_t count = read(file.get(), bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    total += static_cast<size_t>(count);
    rest.append(bytes, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      on_line(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
  }
  return 0;
}

/// The name of the file of a line of /proc/PID/maps; "" where it is of none.
std::string_view mapped_file(std::string_view line) {
  const size_t slash = line.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string_view name = line.substr(slash + 1);
  constexpr std::string_view kDeleted = " (deleted)";
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  return name;
}

/// In the reader: what there is to say of one process, as a line.
std::string describe(const std::string& folder, const SeenProcess& process, const Wanted& wanted,
                     Progress* progress) {
  std::set<std::string, std::less<>> libraries;
  const int error_number = read_lines(folder + "/maps", [&](std::string_view line) {
    const std::string_view name = mapped_file(line);
    if (!name.empty() && wanted.library(name)) libraries.emplace(name);
  });
  const bool is_closed = error_number == EACCES || error_number == EPERM;
  if (error_number == 0) progress->read_count.fetch_add(1, std::memory_order_relaxed);
  if (is_closed) progress->closed_count.fetch_add(1, std::memory_order_relaxed);
  const bool is_named = wanted.process(process.name);
  if (!is_named && libraries.empty()) return {};
  std::string arguments;
  if (is_named) {
    const UniqueFd file(open((folder + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    char bytes[kMaxArgumentBytes];
    const ssize_t read_bytes = file ? read(file.get(), bytes, sizeof bytes) : 0;
    if (read_bytes > 0) arguments = plain({bytes, static_cast<size_t>(read_bytes)});
  }
  std::string line = std::to_string(process.pid) + kBetween + arguments;
  for (const std::string& library : libraries) line += kBetween + plain(library);
  return line + '\n';
}

[[noreturn]] void run_reader(const std::string& proc, const std::vector<SeenProcess>& all,
                             const Wanted& wanted, Progress* progress, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  progress->has_begun.store(true, std::memory_order_relaxed);
  for (uint32_t i = progress->next.load(std::memory_order_relaxed); i < all.size(); ++i) {
    progress->next.store(i, std::memory_order_relaxed);
    const std::string folder = proc + "/" + std::to_string(all[i].pid);
    const std::string line = describe(folder, all[i], wanted, progress);
    if (!line.empty() && !write_all(out, line.data(), line.size())) _exit(1);
  }
  progress->next.store(static_cast<uint32_t>(all.size()), std::memory_order_relaxed);
  _exit(0);
}

/// One reader's life, and what it told: it has ended, stands still, or time is up. Nothing: none
/// can be started.
std::optional<std::string> run_one_reader(const std::string& proc,
                                          const std::vector<SeenProcess>& all, const Wanted& wanted,
                                          Progress* progress, Clock::time_point end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  progress->has_begun.store(false, std::memory_order_relaxed);
  const pid_t reader = fork();
  if (reader < 0) return std::nullopt;
  if (reader == 0) run_reader(proc, all, wanted, progress, out.get());
  out.reset();
  std::string text;
  char bytes[65536];
  uint32_t at = progress->next.load(std::memory_order_relaxed);
  for (Clock::time_point moved = Clock::now();;) {
    pollfd poll_fd{in.get(), POLLIN, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>(kPollPeriod.count()));
    if (ready > 0) {
      const ssize_t count = read(in.get(), bytes, sizeof bytes);
      if (count <= 0) break;
      text.append(bytes, static_cast<size_t>(count));
    }
    const Clock::time_point now = Clock::now();
    const uint32_t next = progress->next.load(std::memory_order_relaxed);
    if (next != at || !progress->has_begun.load(std::memory_order_relaxed)) moved = now;
    at = next;
    if (ready <= 0 && (now - moved > kPatience || now > end)) break;
  }
  kill(reader, SIGKILL);
  // It may stand still where not even that ends it; then init gets it.
  for (int i = 0; i < 10 && waitpid(reader, nullptr, WNOHANG) == 0; ++i)
    std::this_thread::sleep_for(kPollPeriod / 4);
  return text;
}

void take(std::string_view text, std::vector<SeenProcess>* all) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;  // its reader was killed at it
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    std::vector<std::string> fields;
    for (size_t between = 0; between != std::string_view::npos;) {
      between = line.find(kBetween);
      fields.emplace_back(line.substr(0, between));
      if (between != std::string_view::npos) line.remove_prefix(between + 1);
    }
    pid_t pid = 0;
    if (fields.size() < 2 || !to_number(fields[0], &pid)) continue;
    for (SeenProcess& process : *all) {
      if (process.pid != pid) continue;
      process.arguments = fields[1];
      process.libraries.assign(fields.begin() + 2, fields.end());
    }
  }
}

}  // namespace

ProcessLook look_at_processes(const std::string& proc, const Wanted& wanted,
                              std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  ProcessLook look;
  std::vector<SeenProcess> all = list_processes(proc, end, &look.unread_count);
  void* memory =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return look;
  auto* progress = new (memory) Progress{};
  const auto count = static_cast<uint32_t>(all.size());
  while (progress->next.load(std::memory_order_relaxed) < count && Clock::now() < end) {
    const std::optional<std::string> told = run_one_reader(proc, all, wanted, progress, end);
    if (!told) break;
    take(*told, &all);
    const uint32_t at = progress->next.load(std::memory_order_relaxed);
    if (at >= count || Clock::now() >= end) break;
    look.stuck.push_back(all[at].pid);
    progress->next.store(at + 1, std::memory_order_relaxed);
  }
  look.unread_count += count - std::min(count, progress->next.load(std::memory_order_relaxed));
  look.read_count = progress->read_count.load(std::memory_order_relaxed);
  look.closed_count = progress->closed_count.load(std::memory_order_relaxed);
  munmap(memory, sizeof(Progress));
  for (SeenProcess& process : all) {
    if (!process.libraries.empty() || wanted.process(process.name))
      look.processes.push_back(std::move(process));
  }
  std::sort(look.processes.begin(), look.processes.end(),
            [](const SeenProcess& a, const SeenProcess& b) { return a.pid < b.pid; });
  return look;
}

}  // namespace aon::tools
