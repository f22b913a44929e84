#include "writers/hdf5/call_paths.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "writers/hdf5/column.h"
#include "writers/hdf5/h5.h"

namespace aon::writers::hdf5 {
namespace {

void write_functions(hid_t file, const Model& model) {
  Table table(file, "functions", "functions that samples hit");
  auto& name = table.add_text("name", {"", "demangled, or module+offset"});
  auto& source = table.add_text("file", {"", "its source, empty where it is not known"});
  auto& module = table.add_text("module", {"", "program or library"});
  for (const GlobalFunction& function : model.functions) {
    name.append(function.name);
    source.append(function.file);
    module.append(function.module);
  }
  table.finish();
}

/// Of periods: ns where all samples are of a clock, 1 where they are of cycles, "" where processes
/// differ.
const char* period_unit(const Model& model) {
  const char* unit = nullptr;
  for (const Group& group : model.groups) {
    if (group.process == nullptr || group.process->sampled_event.empty()) continue;
    const char* own = group.process->sampled_event == "cycles" ? "1" : "ns";
    if (unit != nullptr && std::string_view(unit) != own) return "";
    unit = own;
  }
  return unit != nullptr ? unit : "";
}

void write_tree(hid_t file, const Model& model, const std::vector<profile::CallPathCount>& counts) {
  Table table(file, "callpaths", "tree of call paths, a parent before its children");
  auto& parent = table.add<int64_t>("parent", {"1", "row of /callpaths, -1 outermost"});
  auto& function = table.add<uint32_t>("function", {"1", "row of /functions"});
  auto& line = table.add<uint32_t>("line", {"1", "in the function's file, 0 unknown"});
  auto& self = table.add<uint64_t>("self_count", {"1", "samples that hit it, all processes"});
  auto& total = table.add<uint64_t>("total_count", {"1", "samples in it and in what it called"});
  const char* unit = period_unit(model);
  auto& self_period = table.add<uint64_t>("self_period", {unit, "sum of their periods, /samples"});
  auto& total_period = table.add<uint64_t>("total_period", {unit, "the same of total_count"});
  for (size_t i = 0; i < model.call_paths.size(); ++i) {
    const GlobalCallPath& path = model.call_paths[i];
    parent.append(path.parent ? int64_t{*path.parent} : -1);
    function.append(path.function);
    line.append(path.line);
    self.append(counts[i].self);
    total.append(counts[i].total);
    self_period.append(counts[i].self_period);
    total_period.append(counts[i].total_period);
  }
  table.finish();
}

uint32_t rate_of(const Group& group) {
  return group.process->sampling.empty() ? 0 : group.process->sampling.front().rate_hz;
}

void write_samples(hid_t file, const Model& model, const profile::CallSamples& samples) {
  Table table(file, "samples", "samples by process, thread and call path");
  auto& rank = table.add<int64_t>("rank", {"1", "rank in MPI_COMM_WORLD, -1 without"});
  auto& process = table.add<uint32_t>("process", {"1", "row of /ranks"});
  auto& tid = table.add<int64_t>("tid", {"1", "thread id of the system"});
  auto& path = table.add<uint32_t>("callpath", {"1", "row of /callpaths"});
  auto& count = table.add<uint64_t>("count", {"1", "samples"});
  auto& period = table.add<uint64_t>(
      "period", {period_unit(model), "sum of periods: ns of CPU time, or cycles (see event)"});
  uint32_t rate_hz = 0;
  std::string event;
  for (const profile::CallSampleRow& row : samples.rows()) {
    const Group& group = model.groups[row.group];
    rank.append(group.rank ? int64_t{*group.rank} : -1);
    process.append(row.group);
    tid.append(row.tid);
    path.append(row.call_path);
    count.append(row.count);
    period.append(row.period);
    rate_hz = std::max(rate_hz, rate_of(group));
    event = group.process->sampled_event;
  }
  table.finish();
  set_attribute(table.group(), "rate_hz", static_cast<int64_t>(rate_hz));
  set_attribute(table.group(), "event", event);
  set_attribute(table.group(), "unknown_count", static_cast<int64_t>(samples.unknown_count()));
}

}  // namespace

void write_call_paths(hid_t file, const Model& model, const profile::CallSamples& samples) {
  if (model.call_paths.empty()) return;
  write_functions(file, model);
  write_tree(file, model, samples.counts());
  write_samples(file, model, samples);
}

}  // namespace aon::writers::hdf5
