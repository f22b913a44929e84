#include "writers/hdf5/slurm_export.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <system_error>

#include "writers/hdf5/read.h"

namespace aon::writers {
namespace {

using hdf5::checked;
using hdf5::Handle;

constexpr const char* kCpuTimeMetric = "task-clock";
constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr hsize_t kChunkRows = 64;

/// "context-switches" -> "ContextSwitches".
std::string slurm_name(const std::string& metric) {
  std::string name;
  bool upper = true;
  for (const char c : metric) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return name;
}

/// Slurm's way of writing a time: "Fri Nov 21 04:40:00 2025".
std::string slurm_time(int64_t time_ns) {
  const time_t seconds = static_cast<time_t>(time_ns / kNsPerSecond);
  tm local{};
  localtime_r(&seconds, &local);
  char text[40];
  strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &local);
  return text;
}

/// Column of a metric brought to one value per second.
struct Field {
  std::string name;
  std::vector<double> values;  ///< by row
};

/// Rows of one task's table.
struct TaskRows {
  std::vector<uint64_t> elapsed_s;
  std::vector<uint64_t> epoch_s;
  std::vector<Field> fields;
};

/// The samples that end each second in which there is one.
std::vector<size_t> last_of_each_second(const std::vector<int64_t>& time_ns) {
  std::vector<size_t> last;
  for (size_t i = 0; i < time_ns.size(); ++i) {
    const int64_t second = time_ns[i] / kNsPerSecond;
    if (i + 1 == time_ns.size() || time_ns[i + 1] / kNsPerSecond != second) last.push_back(i);
  }
  return last;
}

/// Value at each of `ends`; of an accumulated metric, its growth since the one before (a count that
/// fell began anew). A gap (NaN) keeps the last value.
std::vector<double> per_second(const std::vector<double>& values, const std::vector<size_t>& ends,
                               bool accumulated) {
  std::vector<double> result;
  double last = 0;
  double before = 0;
  size_t next = 0;
  for (const size_t end : ends) {
    for (; next <= end; ++next) {
      if (!std::isnan(values[next])) last = values[next];
    }
    const double base = accumulated && last >= before ? before : 0.0;
    result.push_back(last - base);
    before = last;
  }
  return result;
}

/// `first_ns`: the CPU time at the first sample, which was spent before the time that is known.
void add_cpu_fields(TaskRows& rows, const std::vector<double>& cpu_ns, double first_ns,
                    const std::vector<int64_t>& time_ns, const std::vector<size_t>& ends) {
  Field utilization{"CPUUtilization", {}};
  Field cpu_time{"CPUTime", {}};
  for (size_t i = 0; i < ends.size(); ++i) {
    const int64_t from_ns = i == 0 ? time_ns.front() : time_ns[ends[i - 1]];
    const double wall_ns = static_cast<double>(time_ns[ends[i]] - from_ns);
    const double spent_ns = cpu_ns[i] - (i == 0 ? std::min(first_ns, cpu_ns[i]) : 0);
    utilization.values.push_back(wall_ns > 0 ? 100.0 * spent_ns / wall_ns : 0.0);
    cpu_time.values.push_back(cpu_ns[i] / 1e9);
  }
  rows.fields.insert(rows.fields.begin(), {std::move(utilization), std::move(cpu_time)});
}

[[noreturn]] void refuse(const std::string& group) {
  throw hdf5::H5Error(group + ": columns that do not belong together");
}

TaskRows read_task(hid_t file, const std::string& path, int64_t start_ns) {
  TaskRows rows;
  const std::vector<int64_t> time_ns = hdf5::read_integers(file, path + "/time");
  const std::vector<size_t> ends = last_of_each_second(time_ns);
  for (const size_t end : ends) {
    rows.epoch_s.push_back(static_cast<uint64_t>(time_ns[end] / kNsPerSecond));
    rows.elapsed_s.push_back(
        static_cast<uint64_t>(std::max<int64_t>(0, time_ns[end] - start_ns) / kNsPerSecond));
  }
  for (const std::string& name : hdf5::names_in(file, path)) {
    const Handle dataset = hdf5::open_dataset(file, path + "/" + name);
    const std::string mode = hdf5::read_text_attribute(dataset.get(), "mode");
    if (mode.empty()) continue;  // time, scales
    const std::vector<double> column = hdf5::read_numbers(file, path + "/" + name);
    if (column.size() != time_ns.size()) refuse(path);
    const std::vector<double> values = per_second(column, ends, mode == "accumulated");
    if (name == kCpuTimeMetric) {
      const double first_ns = column.empty() || std::isnan(column[0]) ? 0.0 : column[0];
      add_cpu_fields(rows, values, first_ns, time_ns, ends);
    } else {
      rows.fields.push_back({slurm_name(name), values});
    }
  }
  return rows;
}

void write_task(hid_t tasks, const std::string& name, const TaskRows& rows) {
  const size_t row_bytes = (2 + rows.fields.size()) * 8;  // all fields have 8 bytes
  const Handle type(checked(H5Tcreate(H5T_COMPOUND, row_bytes), "row type"));
  checked(H5Tinsert(type.get(), "ElapsedTime", 0, H5T_NATIVE_UINT64), "row type");
  checked(H5Tinsert(type.get(), "EpochTime", 8, H5T_NATIVE_UINT64), "row type");
  for (size_t f = 0; f < rows.fields.size(); ++f) {
    checked(H5Tinsert(type.get(), rows.fields[f].name.c_str(), 16 + 8 * f, H5T_NATIVE_DOUBLE),
            rows.fields[f].name.c_str());
  }
  std::vector<char> data(rows.epoch_s.size() * row_bytes);
  for (size_t r = 0; r < rows.epoch_s.size(); ++r) {
    char* row = data.data() + r * row_bytes;
    memcpy(row, &rows.elapsed_s[r], 8);
    memcpy(row + 8, &rows.epoch_s[r], 8);
    for (size_t f = 0; f < rows.fields.size(); ++f) {
      memcpy(row + 16 + 8 * f, &rows.fields[f].values[r], 8);
    }
  }
  const hid_t table =
      checked(H5PTcreate(tasks, name.c_str(), type.get(), kChunkRows, H5P_DEFAULT), "task table");
  const herr_t appended = H5PTappend(table, rows.epoch_s.size(), data.data());
  H5PTclose(table);
  checked(appended, "task table");
}

/// A host with tasks that have samples. Two agents of one host (of containers) are two nodes.
struct Host {
  int64_t index = 0;                                   ///< its first node
  std::vector<std::pair<int64_t, std::string>> tasks;  ///< number, path of its series
};
using Hosts = std::map<std::string, Host>;  ///< by name

/// Number in the name -> path of the series of perf.
std::map<int64_t, std::string> find_series(hid_t file, const std::string& prefix) {
  std::map<int64_t, std::string> series;
  for (const std::string& name : hdf5::names_in(file, "series")) {
    const std::string path = "series/" + name + "/perf";
    if (name.rfind(prefix, 0) == 0 && hdf5::exists(file, path))
      series[std::stoll(name.substr(prefix.size()))] = path;
  }
  return series;
}

/// Slurm knows tasks alone: where no rank has samples, the processes of a job without MPI are such,
/// by their rows of /ranks.
Hosts find_hosts(hid_t file) {
  std::map<int64_t, std::string> series = find_series(file, "rank_");
  const bool are_ranks = !series.empty();
  if (!are_ranks) series = find_series(file, "process_");
  const std::vector<std::string> names = hdf5::read_texts(file, "nodes/name");
  const std::vector<int64_t> rank = hdf5::read_integers(file, "ranks/rank");
  const std::vector<int64_t> node = hdf5::read_integers(file, "ranks/node");
  if (rank.size() != node.size()) refuse("ranks");
  Hosts hosts;
  for (size_t row = 0; row < rank.size(); ++row) {
    const auto found = series.find(are_ranks ? rank[row] : static_cast<int64_t>(row));
    if (found == series.end() || node[row] < 0) continue;
    Host& host = hosts[names.at(static_cast<size_t>(node[row]))];
    host.index = host.tasks.empty() ? node[row] : std::min(host.index, node[row]);
    host.tasks.emplace_back(found->first, found->second);
  }
  return hosts;
}

void write_host(hid_t in, hid_t out, const std::string& name, const Host& host, int64_t start_ns) {
  const Handle node = hdf5::create_group(out, "Steps/0/Nodes/" + name);
  hdf5::set_attribute(node.get(), "Node Index", host.index);
  hdf5::set_attribute(node.get(), "Node Name", name);
  hdf5::set_attribute(node.get(), "Number of Tasks", static_cast<int64_t>(host.tasks.size()));
  hdf5::set_attribute(node.get(), "CPUs per Task", int64_t{1});
  hdf5::set_attribute(node.get(), "Start Time", slurm_time(start_ns));
  const Handle group = hdf5::create_group(node.get(), "Tasks");
  for (const auto& [number, path] : host.tasks) {
    write_task(group.get(), std::to_string(number), read_task(in, path, start_ns));
  }
}

void write_hosts(hid_t in, hid_t out, const Hosts& hosts) {
  const int64_t start_ns = hdf5::read_integer_attribute(in, "start_ns");
  for (const auto& [name, host] : hosts) write_host(in, out, name, host, start_ns);
  const Handle step(checked(H5Gopen2(out, "Steps/0", H5P_DEFAULT), "Steps/0"));
  hdf5::set_attribute(step.get(), "Number of Nodes", static_cast<int64_t>(hosts.size()));
  checked(H5Fflush(out, H5F_SCOPE_GLOBAL), "cannot write the file");
}

}  // namespace

Status export_slurm_hdf5(const std::filesystem::path& dir, const std::filesystem::path& out) {
  hdf5::use_library();
  const std::filesystem::path in = dir / "profile.h5";
  Handle file;
  Hosts hosts;
  Status status = hdf5::guard(in, [&] {
    file = hdf5::open_file(in);
    hosts = find_hosts(file.get());
  });
  if (!status) return status;
  if (hosts.empty()) {
    return Error{Code::kNotFound, in.string() +
                                      " has no samples of the perf provider; `aon info` "
                                      "says what was not collected and why"};
  }
  bool is_made = false;
  status = hdf5::guard(out, [&] {
    const Handle made = hdf5::create_file(out);
    is_made = true;
    write_hosts(file.get(), made.get(), hosts);
  });
  std::error_code ignored;
  if (!status && is_made && std::filesystem::is_regular_file(out, ignored))
    std::filesystem::remove(out, ignored);  // half of it is no use to anybody
  return status;
}

}  // namespace aon::writers
