#include "node/node.h"

#include <algorithm>

#include "node/text.h"

namespace aon::node {
namespace {

constexpr double kKibibyte = 1024;
constexpr size_t kStatBytes = size_t{1} << 20;  ///< one line per CPU, and the interrupts
constexpr double kTickSeconds = 0.01;           ///< USER_HZ is 100 on every Linux

Series shared(const char* name, const char* unit, const char* description) {
  return {name, unit, std::string(description) + kShared};
}

}  // namespace

StateText NodeSession::find() {
  if (!system_.read("/proc/meminfo")) {
    return {AON_STATE_OFF, "/proc is not mounted", "mount -t proc proc /proc"};
  }
  const auto online = cpus_in(system_.read("/sys/devices/system/cpu/online").text);
  clocks_.find({online.begin(), online.end()});
  StateText state;
  // A virtual machine has none of them; that is nothing to repair.
  if (const std::string missing = clocks_.missing(); !missing.empty()) {
    state.reason = "this machine does not tell: " + missing;
  }
  return state;
}

void NodeSession::process_started(uint32_t, pid_t pid) {
  const std::string status = system_.read("/proc/" + std::to_string(pid) + "/status").text;
  if (const auto allowed = line_of(status, "Cpus_allowed_list")) {
    const size_t count_before = job_cpus_.size();
    for (const int cpu : cpus_in(*allowed)) job_cpus_.insert(cpu);
    if (job_cpus_.size() != count_before) clocks_.find(job_cpus_);
  }
  if (cgroups_) return;
  Cgroups cgroups(system_, pid);
  if (cgroups.empty()) return;
  cgroups_ = std::move(cgroups);
  output_.set_time(output_.now_ticks());
  cgroups_->read(output_);
}

void NodeSession::read_memory() {
  const File file = system_.read_again("/proc/meminfo");
  const auto bytes_of = [&](const char* key) {
    return static_cast<double>(field_of(file.text, key).value_or(0)) * kKibibyte;
  };
  if (!file || !field_of(file.text, "MemAvailable")) return;
  const double available = bytes_of("MemAvailable");
  output_.value(AON_PROCESS_NODE,
                shared("memory-used", "By", "memory that cannot be had without swapping"),
                bytes_of("MemTotal") - available);
  output_.value(AON_PROCESS_NODE,
                shared("memory-available", "By", "memory that programs can get without swapping"),
                available);
  output_.value(AON_PROCESS_NODE, shared("memory-cached", "By", "page cache"), bytes_of("Cached"));
  output_.value(AON_PROCESS_NODE, shared("memory-dirty", "By", "page cache that waits for storage"),
                bytes_of("Dirty"));
  output_.value(AON_PROCESS_NODE, shared("swap-used", "By", "swap space in use"),
                bytes_of("SwapTotal") - bytes_of("SwapFree"));
}

void NodeSession::read_paging() {
  struct Field {
    const char* key;
    Series series;
  };
  static const Field kFields[] = {
      {"pgfault", shared("page-faults", "1", "page faults")},
      {"pgmajfault", shared("major-faults", "1", "page faults that waited for storage")},
      {"pswpin", shared("swapped-in", "1", "pages read from swap space")},
      {"pswpout", shared("swapped-out", "1", "pages written to swap space")},
      {"numa_miss",
       shared("numa-misses", "1", "pages that came from another NUMA node than wanted")},
      {"oom_kill", shared("oom-kills", "1", "processes killed for lack of memory")},
  };
  const File file = system_.read_again("/proc/vmstat");
  for (const Field& field : kFields) {
    const auto raw = field_of(file.text, field.key);
    if (file && raw) output_.count(AON_PROCESS_NODE, field.series, *raw);
  }
}

/// "user nice system idle iowait irq softirq steal guest guest_nice"; guest is part of user. Idle
/// and iowait may go back a little.
void NodeSession::read_cpu_line(std::string_view line) {
  uint64_t ticks[8] = {};
  const auto words = split(line, " ");
  for (size_t i = 0; i < std::min(words.size(), std::size(ticks)); ++i) {
    ticks[i] = number_in(words[i]).value_or(0);
  }
  struct Part {
    Series series;
    uint64_t ticks;
  };
  const Part parts[] = {
      {shared("cpu-user", "s", "CPU time of programs, all CPUs"), ticks[0] + ticks[1]},
      {shared("cpu-system", "s", "CPU time of the kernel, all CPUs"),
       ticks[2] + ticks[5] + ticks[6]},
      {shared("cpu-iowait", "s", "time of idle CPUs on which a program waits for storage"),
       ticks[4]},
      {shared("cpu-steal", "s", "time that the hypervisor gave to others"), ticks[7]},
  };
  for (const Part& part : parts) {
    output_.count(AON_PROCESS_NODE, part.series, part.ticks, kTickSeconds, Total::Decrease::kNoise);
  }
  const CpuTimes now{
      ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6],
      ticks[0] + ticks[1] + ticks[2] + ticks[3] + ticks[4] + ticks[5] + ticks[6] + ticks[7]};
  const bool has_interval = last_ && now.all > last_->all && now.busy >= last_->busy;
  if (has_interval) {
    const double share =
        static_cast<double>(now.busy - last_->busy) / static_cast<double>(now.all - last_->all);
    output_.value(AON_PROCESS_NODE,
                  shared("cpu-utilisation", "1", "share of all CPUs' time in which they worked"),
                  std::min(share, 1.0));
  }
  last_ = now;
}

void NodeSession::read_load() {
  if (const File stat = system_.read_again("/proc/stat", kStatBytes)) {
    if (const auto line = line_of(stat.text, "cpu")) read_cpu_line(*line);
    if (const auto switches = field_of(stat.text, "ctxt")) {
      output_.count(AON_PROCESS_NODE,
                    shared("context-switches", "1", "context switches of all CPUs"), *switches);
    }
    if (const auto running = field_of(stat.text, "procs_running")) {
      output_.value(AON_PROCESS_NODE, shared("tasks-running", "1", "threads that can run now"),
                    static_cast<double>(*running));
    }
  }
  const File load = system_.read_again("/proc/loadavg");
  const auto minute = fraction_in(load.text.substr(0, load.text.find(' ')));
  if (load && minute) {
    output_.value(AON_PROCESS_NODE, shared("load", "1", "load average of the last minute"),
                  *minute);
  }
}

void NodeSession::read() {
  read_memory();
  read_paging();
  read_load();
  if (cgroups_) cgroups_->read(output_);
  clocks_.read(output_);
}

}  // namespace aon::node
