#include "node/process.h"

#include <algorithm>
#include <cerrno>

#include "node/text.h"

namespace aon::node {
namespace {

constexpr double kKibibyte = 1024;

/// Field 22 of /proc/PID/stat; the name of the program may hold spaces and parentheses.
uint64_t start_time_of(const System& system, const std::string& folder) {
  const std::string text = system.read(folder + "/stat").text;
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return 0;
  const auto fields = split(std::string_view(text).substr(end + 1), " ");
  return fields.size() > 19 ? number_in(fields[19]).value_or(0) : 0;
}

struct IoField {
  const char* key;
  Series series;
};

const IoField kIoFields[] = {
    {"read_bytes", {"storage-read", "By", "bytes read from storage"}},
    {"write_bytes", {"storage-written", "By", "bytes on their way to storage: pages made dirty"}},
    {"rchar", {"io-read", "By", "bytes returned by read() and the like, from any source"}},
    {"wchar", {"io-written", "By", "bytes given to write() and the like, to any target"}},
    {"cancelled_write_bytes",
     {"storage-cancelled", "By", "bytes that were counted as written, but truncated in time"}},
};

struct MemoryField {
  const char* key;
  Series series;
};

const MemoryField kMemoryFields[] = {
    {"VmRSS", {"memory", "By", "memory in use, shared pages included"}},
    {"VmHWM", {"memory-peak", "By", "largest memory in use so far"}},
    {"VmSwap", {"swap", "By", "memory that was moved out to swap space"}},
};

}  // namespace

StateText ProcessSession::find() {
  if (system_.read("/proc/self/status")) return {};
  return {AON_STATE_OFF, "/proc is not mounted", "mount -t proc proc /proc"};
}

/// Where processes are hidden, that of number 1 is, too.
bool ProcessSession::has_ended(const File& status) const {
  return status.error_number == ESRCH ||
         (status.error_number == ENOENT && system_.read("/proc/1/status"));
}

bool ProcessSession::is_same(const Process& process) const {
  return process.start_time != 0 && start_time_of(system_, process.folder) == process.start_time;
}

void ProcessSession::process_started(uint32_t number, pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  Process process{folder,
                  start_time_of(system_, folder),
                  {system_, folder + "/status"},
                  {system_, folder + "/io"}};
  StateText state;
  if (const File status = process.status.read(); !status && has_ended(status)) {
    state = {AON_STATE_OFF, "the process ended before it could be watched", ""};
  } else if (!status) {
    state = {AON_STATE_OFF, "/proc/PID cannot be read: the process has ended, or hidepid",
             "mount -o remount,hidepid=0 /proc"};
  } else if (const File io = process.io.read(); io) {
    process.has_io = true;
  } else if (io.error_number == ENOENT) {
    state.add(AON_STATE_DEGRADED, "no file-system bytes: the kernel does not count them",
              "a kernel with CONFIG_TASK_IO_ACCOUNTING");
  } else {
    state.add(AON_STATE_DEGRADED,
              "no file-system bytes: /proc/PID/io may not be read (other user, or not dumpable)",
              "start it with aon-run");
  }
  if (state.state != AON_STATE_OFF) {
    output_.set_time(output_.now_ticks());
    read_process(number, process);
  }
  // After the metrics: the core knows then whether they go on from a worker that was killed.
  output_.set_state(number, state);
  if (state.state == AON_STATE_OFF) return;
  processes_.insert_or_assign(number, std::move(process));
}

void ProcessSession::process_ended(uint32_t number) {
  const auto found = processes_.find(number);
  if (found != processes_.end() && is_same(found->second)) {
    output_.set_time(output_.now_ticks());
    read_io(number, found->second);
  }
  if (found != processes_.end()) processes_.erase(found);
  output_.forget(number);
}

void ProcessSession::read_memory(uint32_t number, const Process& process) {
  const File status = process.status.read();
  for (const MemoryField& field : kMemoryFields) {
    const auto kibibytes = field_of(status.text, field.key);  // none of a zombie
    if (!status || !kibibytes) continue;
    output_.value(number, field.series, static_cast<double>(*kibibytes) * kKibibyte);
  }
}

void ProcessSession::read_io(uint32_t number, const Process& process) {
  if (!process.has_io) return;
  const File io = process.io.read();
  for (const IoField& field : kIoFields) {
    const auto bytes = field_of(io.text, field.key);
    if (!io || !bytes) continue;
    output_.count(number, field.series, *bytes, 1, Total::Decrease::kNoise);
  }
}

void ProcessSession::read_process(uint32_t number, const Process& process) {
  read_memory(number, process);
  read_io(number, process);
}

void ProcessSession::read() {
  const size_t wanted = (processes_.size() + kProcessesPerTick - 1) / kProcessesPerTick;
  const size_t stride = std::clamp<size_t>(wanted, 1, kMaxStride);
  // By the clock that nodes have in common: the longest turns of all agents come together. A beat
  // may be missed, or the pace leave it out: the next one that comes will do.
  const uint64_t beat = system_.wall_ns() / kProcessPeriodNs;
  if (stride > 1 && beat / stride == last_beat_ / stride) return;
  last_beat_ = beat;
  for (const auto& [number, process] : processes_) read_process(number, process);
}

}  // namespace aon::node
