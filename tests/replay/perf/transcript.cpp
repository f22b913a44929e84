#include "tests/replay/perf/transcript.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace aon::perf::test {
namespace {

std::ostream* recorder_out;
Replay* current;

std::string open_call(const perf_event_attr& attr, pid_t pid, int group) {
  std::ostringstream call;
  call << "open " << attr.type << ' ' << attr.config << ' ' << (attr.exclude_kernel ? "k" : "-")
       << (attr.inherit_thread ? "t" : "-");
  if ((attr.read_format & PERF_FORMAT_GROUP) != 0) call << 'g';
  call << ' ' << pid;
  if (group != kNoGroup) call << " in " << group;
  return call.str();
}
std::string tasks_call(pid_t pid) { return "tasks " + std::to_string(pid); }
std::string task_call(pid_t pid, pid_t tid) {
  if (pid == getpid()) return "task self self";
  return "task " + std::to_string(pid) + " " + std::to_string(tid);
}

int record_open(const perf_event_attr& attr, pid_t pid, int group) {
  const int result = real_kernel().open_event(attr, pid, group);
  *recorder_out << open_call(attr, pid, group) << " = " << result << '\n';
  return result;
}
ssize_t record_read(int fd, void* data, size_t size_bytes) {
  const ssize_t result = real_kernel().read_event(fd, data, size_bytes);
  *recorder_out << "read " << fd << " = ";
  if (result < 0) *recorder_out << result;
  for (ssize_t at = 0; at < result; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, static_cast<const char*>(data) + at, sizeof(word));
    *recorder_out << (at == 0 ? "" : " ") << word;
  }
  *recorder_out << '\n';
  return result;
}
std::vector<pid_t> record_tasks(pid_t pid) {
  const std::vector<pid_t> tasks = real_kernel().list_tasks(pid);
  *recorder_out << tasks_call(pid) << " =";
  for (const pid_t tid : tasks) *recorder_out << ' ' << tid;
  *recorder_out << '\n';
  return tasks;
}
bool record_task(pid_t pid, pid_t tid, TaskCounts* counts) {
  const bool alive = real_kernel().read_task(pid, tid, counts);
  *recorder_out << task_call(pid, tid) << " = ";
  if (!alive) {
    *recorder_out << "none\n";
    return false;
  }
  *recorder_out << counts->context_switches << ' '
                << (counts->has_migrations ? std::to_string(counts->migrations) : "-") << '\n';
  return true;
}
int record_paranoid() {
  const int level = real_kernel().paranoid_level();
  *recorder_out << "paranoid = " << level << '\n';
  return level;
}

int replay_open(const perf_event_attr& attr, pid_t pid, int group) {
  const std::string result = current->next(open_call(attr, pid, group));
  const int fd = result.empty() ? -ENOENT : std::stoi(result);
  if (fd >= 0) current->open_descriptors.push_back(fd);
  return fd;
}
ssize_t replay_read(int fd, void* data, size_t size_bytes) {
  const std::string text = current->next("read " + std::to_string(fd));
  if (text.empty() || text[0] == '-') return text.empty() ? -EBADF : std::stol(text);
  std::istringstream result(text);
  std::vector<uint64_t> words;
  for (uint64_t word; result >> word;) words.push_back(word);
  const size_t byte_count = std::min(size_bytes, words.size() * sizeof(uint64_t));
  memcpy(data, words.data(), byte_count);
  return static_cast<ssize_t>(byte_count);
}
void replay_close(int fd) {
  std::vector<int>& open = current->open_descriptors;
  const auto found = std::find(open.begin(), open.end(), fd);
  if (found == open.end()) {
    current->missing.push_back("open descriptor " + std::to_string(fd));
  } else {
    open.erase(found);
  }
}
std::vector<pid_t> replay_tasks(pid_t pid) {
  std::istringstream result(current->next(tasks_call(pid)));
  std::vector<pid_t> tasks;
  for (pid_t tid; result >> tid;) tasks.push_back(tid);
  return tasks;
}
bool replay_task(pid_t pid, pid_t tid, TaskCounts* counts) {
  *counts = {};
  const std::string text = current->next(task_call(pid, tid));
  if (text.empty() || text == "none") return false;
  std::istringstream result(text);
  std::string migrations;
  result >> counts->context_switches >> migrations;
  counts->has_migrations = migrations != "-";
  if (counts->has_migrations) counts->migrations = std::stoull(migrations);
  return true;
}
int replay_paranoid() {
  const std::string level = current->next("paranoid");
  return level.empty() ? 2 : std::stoi(level);
}
/// Transcripts hold no files: of a machine with one kind of cores.
std::string no_file(const std::string&) { return ""; }

}  // namespace

const Kernel& recording_kernel(std::ostream& out) {
  static const Kernel kernel = {record_open,  record_read, real_kernel().close_event,
                                record_tasks, record_task, record_paranoid,
                                nullptr,      nullptr,     nullptr,
                                no_file};
  recorder_out = &out;
  return kernel;
}

Replay::Replay(const std::string& transcript) {
  std::istringstream lines(transcript);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.rfind("> ", 0) == 0) {
      drives.push_back(line.substr(2));
      continue;
    }
    const size_t split = line.find(" =");
    if (split == std::string::npos) {
      missing.push_back("a result in line: " + line);
      continue;
    }
    const size_t value = std::min(split + 3, line.size());
    results[line.substr(0, split)].push_back(line.substr(value));
  }
}

std::string Replay::next(const std::string& call) {
  const auto found = results.find(call);
  if (found == results.end() || found->second.empty()) {
    missing.push_back(call);
    return "";
  }
  const std::string result = found->second.front();
  found->second.pop_front();
  return result;
}

const Kernel& replay_kernel(Replay& replay) {
  static const Kernel kernel = {replay_open, replay_read,     replay_close, replay_tasks,
                                replay_task, replay_paranoid, nullptr,      nullptr,
                                nullptr,     no_file};
  current = &replay;
  return kernel;
}

}  // namespace aon::perf::test
