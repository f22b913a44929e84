#include "writers/assemble/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "writers/share/files.h"

namespace aon::writers {
namespace {

namespace fs = std::filesystem;
using share::FileReader;
using share::FileWriter;

constexpr uint64_t kPlanKey = 0;
constexpr uint64_t kPathsKey = 1;

/// FNV-1a (Fowler, Noll, Vo), of what a StateOut has.
uint64_t hash_of(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

void put_sorted(const std::unordered_map<uint32_t, uint32_t>& ids, StateOut* out) {
  out->put(std::map<uint32_t, uint32_t>(ids.begin(), ids.end()));
}

void put_groups(const Model& model, StateOut* out) {
  for (const Group& group : model.groups) {
    out->put(group.id);
    out->put(group.rank);
    out->put(group.node);
    out->put(group.process == nullptr ? uint32_t{0} : group.process->start.process);
    for (const auto* ids : {&group.region_map, &group.communicator_map, &group.window_map,
                            &group.rank_group_map, &group.metric_map, &group.file_map}) {
      put_sorted(*ids, out);
    }
  }
}

void put_locations(const Model& model, StateOut* out) {
  for (const Location& location : model.locations) {
    out->put(location.id);
    out->put(location.type);
    out->put(location.process);
    out->put(location.slot);
    out->put(location.in_archive);
    out->put(location.device_stream);
  }
}

/// Where the clocks stand relative to each other.
void put_clocks(const JobModel& parts, StateOut* out) {
  for (size_t node = 0; node < parts.clocks.size(); ++node) {
    for (const auto& [number, process] : parts.job.nodes[node].processes)
      out->put(parts.clocks[node].to_ns(process.start.attach_ticks));
  }
}

void put_paths(const Model& model, StateOut* out) {
  out->put(uint64_t{model.functions.size()});
  for (const GlobalFunction& function : model.functions) {
    out->put(function.name);
    out->put(function.file);
    out->put(function.module);
  }
  out->put(model.call_paths);
  out->put(uint64_t{model.groups.size()});
  for (const Group& group : model.groups) out->put(group.call_path_map);
}

Status get_paths(StateIn* in, Model* model) {
  uint64_t count = 0;
  if (!in->get(&count)) return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    GlobalFunction one;
    if (!in->get(&one.name) || !in->get(&one.file) || !in->get(&one.module)) return in->status();
    model->functions.push_back(std::move(one));
  }
  if (!in->get(&model->call_paths) || !in->get(&count)) return in->status();
  if (count != model->groups.size()) return Error{Code::kDamaged, "the plan is of another job"};
  for (Group& group : model->groups) {
    if (!in->get(&group.call_path_map)) return in->status();
  }
  return {};
}

SharePlan new_plan(const JobModel& parts) {
  SharePlan plan;
  plan.archive_start_ns = parts.model.archive_start_ns;
  plan.fingerprint = model_fingerprint(parts);
  std::random_device random;
  plan.folder = fmt::format("{:08x}{:08x}", random(), random());
  return plan;
}

/// It becomes part of a path.
bool is_name(const std::string& text) {
  return !text.empty() && text.front() != '.' && text.find('/') == std::string::npos;
}

/// A group whose numbers mean nothing in the map is damage.
bool is_usable(const SharePlan& plan) {
  const bool has_names = plan.names.size() == plan.map.count && plan.map.count <= kMaxShares &&
                         is_name(plan.folder) &&
                         std::all_of(plan.names.begin(), plan.names.end(), is_name);
  return has_names && std::all_of(plan.map.of_group.begin(), plan.map.of_group.end(),
                                  [&](uint32_t share) { return share < plan.map.count; });
}

}  // namespace

uint64_t model_fingerprint(const JobModel& parts) {
  const Model& model = parts.model;
  StateOut out;
  put_groups(model, &out);
  put_locations(model, &out);
  put_clocks(parts, &out);
  for (const GlobalRegion& region : model.regions) {
    // Not all may have read the long name of a kernel.
    if (region.paradigm != Paradigm::kCuda) out.put(region.name);
    out.put(region.role);
    out.put(region.paradigm);
  }
  for (const GlobalCommunicator& communicator : model.communicators) {
    out.put(communicator.name);
    out.put(communicator.kind);
    out.put(communicator.members);
    out.put(communicator.rank_count);
    for (const std::vector<uint32_t>* sources : communicator.sources) {
      if (sources != nullptr) out.put(*sources);
    }
    if (!communicator.cartesian) continue;
    out.put(communicator.cartesian->extents);
    out.put(communicator.cartesian->periodic);
  }
  for (const GlobalMetric& metric : model.metrics) out.put(metric.name);
  for (const GlobalFile& file : model.files) out.put(file.name);
  out.put(uint64_t{model.windows.size()});
  out.put(uint64_t{model.rank_groups.size()});
  out.put(uint64_t{model.open_calls.size()});
  return hash_of(out.bytes());
}

SharePlan plan_by_node(const JobModel& parts) {
  SharePlan plan = new_plan(parts);
  plan.map.count = static_cast<uint32_t>(parts.job.nodes.size());
  for (const spool::Node& node : parts.job.nodes)
    plan.names.push_back(fs::path(node.folder).filename().string());
  for (const Group& group : parts.model.groups) plan.map.of_group.push_back(group.node);
  return plan;
}

SharePlan plan_evenly(const JobModel& parts, uint32_t count) {
  SharePlan plan = new_plan(parts);
  plan.map.count = count;
  for (uint32_t share = 0; share < count; ++share)
    plan.names.push_back("part-" + std::to_string(share));
  for (const Group& group : parts.model.groups) plan.map.of_group.push_back(group.id % count);
  return plan;
}

Status write_plan(const fs::path& shares, const SharePlan& plan, const Model& model) {
  StateOut out;
  out.put(plan.map.count);
  out.put(plan.map.of_group);
  out.put(plan.names);
  out.put(plan.otf2_locations);
  out.put(plan.archive_start_ns);
  out.put(plan.fingerprint);
  out.put(plan.folder);
  out.put(plan.writers);
  StateOut paths;
  put_paths(model, &paths);
  Result<FileWriter> file = FileWriter::create(shares / "plan");
  if (!file) return file.error();
  Status status = file->add(kPlanKey, out.bytes());
  if (status) status = file->add(kPathsKey, paths.bytes());
  return status ? file->finish() : status;
}

Result<SharePlan> read_plan(const fs::path& shares) {
  Result<FileReader> file = FileReader::open(shares / "plan");
  if (!file) return file.error();
  SharePlan plan;
  Status status = file->read(kPlanKey, [&](std::span<const char> bytes) {
    StateIn in(bytes);
    const bool is_good = in.get(&plan.map.count) && in.get(&plan.map.of_group) &&
                         in.get(&plan.names) && in.get(&plan.otf2_locations) &&
                         in.get(&plan.archive_start_ns) && in.get(&plan.fingerprint) &&
                         in.get(&plan.folder) && in.get(&plan.writers);
    if (is_good && !is_usable(plan)) return Status(Error{Code::kDamaged, "the plan is damaged"});
    return in.status();
  });
  if (!status) return status.error();
  return plan;
}

Status read_call_paths(const fs::path& shares, Model* model) {
  Result<FileReader> file = FileReader::open(shares / "plan");
  if (!file) return file.error();
  return file->read(kPathsKey, [&](std::span<const char> bytes) {
    StateIn in(bytes);
    return get_paths(&in, model);
  });
}

}  // namespace aon::writers
