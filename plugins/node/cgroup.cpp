#include "node/cgroup.h"

#include <algorithm>

#include "node/text.h"

namespace aon::node {
namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 60;  ///< v1 says 2^63 less a page for none
constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;

/// Cut behind ".../job_123": the job, not one of its steps.
std::string job_path(const std::string& path) {
  const size_t job = path.find("/job_");
  if (job == std::string::npos) return path;
  const size_t end = path.find('/', job + 1);
  return path.substr(0, end);
}

bool has_word(std::string_view list, const std::string& word) {
  const auto words = split(list, ",");
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Path of the process in the hierarchy of `controller`, or in v2 ("").
std::optional<std::string> path_in(const std::string& membership, const std::string& controller) {
  for (const std::string_view line : split(membership, "\n")) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_it = controller.empty() ? controllers.empty() : has_word(controllers, controller);
    const std::string_view path = line.substr(second + 1);
    if (is_it && path.starts_with('/')) return std::string(path);
  }
  return std::nullopt;
}

std::string joined(const std::string& folder, const std::string& path) {
  return path == "/" ? folder : folder + path;
}

std::optional<uint64_t> number_of(const System& system, const std::string& path) {
  const File file = system.read_again(path);
  return file ? number_in(file.text) : std::nullopt;
}

/// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345": the last one, microseconds.
std::optional<uint64_t> pressure_us(const File& file) {
  const auto line = line_of(file.text, "some");
  const size_t total = line ? line->find("total=") : std::string_view::npos;
  if (!file || total == std::string_view::npos) return std::nullopt;
  return number_in(line->substr(total + 6));
}

Series series(const std::string& where, const char* name, const char* unit,
              const char* description) {
  return {name, unit, description + where};
}

}  // namespace

Cgroups::Cgroups(const System& system, pid_t pid) : system_(&system) {
  const File membership = system.read("/proc/" + std::to_string(pid) + "/cgroup");
  memory_ = group_of(membership.text, "memory", {"memory.current", "memory.usage_in_bytes"});
  cpu_ = group_of(membership.text, "cpu", {"cpu.stat"});
  if (cpu_ && !cpu_->is_v2) accounting_ = group_of(membership.text, "cpuacct", {"cpuacct.usage"});
}

/// Lines of mountinfo: "31 23 0:28 ROOT FOLDER options [tags] - type source superoptions".
std::vector<Cgroups::Mount> Cgroups::mounts() const {
  std::vector<Mount> found;
  const std::string text = system_->read("/proc/self/mountinfo").text;
  for (const std::string_view line : split(text, "\n")) {
    const auto words = split(line, " ");
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    if (dash[1] != "cgroup" && dash[1] != "cgroup2") continue;
    found.push_back(
        {std::string(words[3]), std::string(words[4]), std::string(dash[3]), dash[1] == "cgroup2"});
  }
  return found;
}

/// What stands behind the descriptions of a group at `path` below a mount. The root of a hierarchy
/// is the node, whoever runs there; a container with a namespace of its own sees its group as "/",
/// but has files there that a root has not, or in v1 lacks one that only a root has.
std::string Cgroups::where(const Mount& mount, const std::string& folder,
                           const std::string& path) const {
  if (path != "/") return ", control group " + path;
  const auto has = [&](const char* file) { return system_->exists(folder + file); };
  const bool is_root =
      mount.is_v2 ? !has("/cgroup.type") && !has("/memory.current") : has("/release_agent");
  return mount.root == "/" && is_root ? kShared : ", the container's control group";
}

/// In a container a mount shows a part of the hierarchy: `root` is what stands at its top. A v2
/// group need not have every controller: then its nearest ancestor that has it counts.
std::optional<Cgroups::Group> Cgroups::group_of(const std::string& membership,
                                                const std::string& controller,
                                                const std::vector<std::string>& files) {
  const auto v1_path = path_in(membership, controller);
  const auto path = v1_path ? v1_path : path_in(membership, "");
  if (!path) return std::nullopt;
  for (const Mount& mount : mounts()) {
    if (mount.is_v2 == v1_path.has_value()) continue;
    if (v1_path && !has_word(mount.options, controller)) continue;
    std::string below = job_path(*path);
    const std::string top = mount.root == "/" ? "" : mount.root;
    if ((below + "/").starts_with(top + "/")) below.erase(0, top.size());
    for (;;) {
      if (below.empty()) below = "/";
      const std::string folder = joined(mount.folder, below);
      const bool has_files = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
        return system_->exists(folder + "/" + file);
      });
      if (has_files) return Group{folder, where(mount, folder, below), mount.is_v2};
      if (below == "/") break;
      below.resize(below.rfind('/'));
    }
  }
  return std::nullopt;
}

void Cgroups::read_memory(Output& output) const {
  struct Value {
    const char* v2;
    const char* v1;
    Series series;
  };
  const Value values[] = {
      {"memory.current", "memory.usage_in_bytes",
       series(memory_->where, "cgroup-memory", "By", "memory in use, page cache included")},
      {"memory.peak", "memory.max_usage_in_bytes",
       series(memory_->where, "cgroup-memory-peak", "By", "largest memory in use so far")},
      {"memory.max", "memory.limit_in_bytes",
       series(memory_->where, "cgroup-memory-limit", "By", "memory that may be used")},
      {"memory.swap.current", "", series(memory_->where, "cgroup-swap", "By", "swap space in use")},
  };
  for (const Value& value : values) {
    const std::string file = memory_->is_v2 ? value.v2 : value.v1;
    if (file.empty()) continue;
    const auto bytes = number_of(*system_, memory_->folder + "/" + file);  // "max" is no number
    if (!bytes || *bytes >= kNoLimit) continue;
    output.value(AON_PROCESS_NODE, value.series, static_cast<double>(*bytes));
  }
  const std::string events =
      memory_->folder + (memory_->is_v2 ? "/memory.events" : "/memory.oom_control");
  if (const auto kills = field_of(system_->read_again(events).text, "oom_kill")) {
    output.count(
        AON_PROCESS_NODE,
        series(memory_->where, "cgroup-oom-kills", "1", "processes killed for lack of memory"),
        *kills);
  }
}

void Cgroups::read_cpu(Output& output) const {
  const std::string text = system_->read_again(cpu_->folder + "/cpu.stat").text;
  const auto throttled = field_of(text, cpu_->is_v2 ? "throttled_usec" : "throttled_time");
  if (throttled) {
    output.count(AON_PROCESS_NODE,
                 series(cpu_->where, "cgroup-throttled-time", "s", "time stopped by the CPU limit"),
                 *throttled, cpu_->is_v2 ? kMicro : kNano);
  }
  if (const auto periods = field_of(text, "nr_throttled")) {
    output.count(
        AON_PROCESS_NODE,
        series(cpu_->where, "cgroup-throttled-periods", "1", "periods cut short by the CPU limit"),
        *periods);
  }
  const auto used = cpu_->is_v2 ? field_of(text, "usage_usec") : std::nullopt;
  const auto used_ns =
      accounting_ ? number_of(*system_, accounting_->folder + "/cpuacct.usage") : std::nullopt;
  if (!used && !used_ns) return;
  output.count(
      AON_PROCESS_NODE,
      series(accounting_ ? accounting_->where : cpu_->where, "cgroup-cpu-time", "s", "CPU time"),
      used ? *used : *used_ns, used ? kMicro : kNano);
}

void Cgroups::read_pressure(Output& output) const {
  const Group& group = memory_ && memory_->is_v2 ? *memory_ : *cpu_;
  struct Value {
    const char* file;
    Series series;
  };
  const Value values[] = {
      {"/memory.pressure", series(group.where, "cgroup-memory-pressure", "s",
                                  "time in which some task waited for memory")},
      {"/cpu.pressure",
       series(group.where, "cgroup-cpu-pressure", "s", "time in which some task waited for a CPU")},
      {"/io.pressure", series(group.where, "cgroup-io-pressure", "s",
                              "time in which some task waited for storage")},
  };
  for (const Value& value : values) {
    if (const auto time_us = pressure_us(system_->read_again(group.folder + value.file))) {
      output.count(AON_PROCESS_NODE, value.series, *time_us, kMicro);
    }
  }
}

void Cgroups::read(Output& output) const {
  if (memory_) read_memory(output);
  if (cpu_) read_cpu(output);
  const bool is_v2 = (memory_ && memory_->is_v2) || (cpu_ && cpu_->is_v2);
  if (is_v2) read_pressure(output);
}

}  // namespace aon::node
