#include "writers/hdf5/series.h"

#include <hdf5_hl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/time.h"
#include "core/spool/format.h"
#include "core/spool/text.h"
#include "writers/devices/device_names.h"
#include "writers/hdf5/text.h"

namespace aon::writers::hdf5 {
namespace {

using devices::folder_of;
using devices::name_in_provider;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUnscaled = 1.0;
constexpr const char* kRootPath = "/series";

/// "0-3,8".
std::string listed(const std::vector<const Group*>& ranks) {
  std::vector<uint32_t> numbers(ranks.size());
  std::transform(ranks.begin(), ranks.end(), numbers.begin(),
                 [](const Group* one) { return *one->rank; });
  return spool::listed_ranks(numbers);
}

/// "gpu_UUID/FOLDER" by names that HDF5 takes.
std::string device_path(const std::string& folder) {
  const size_t slash = folder.find('/');
  return object_name(folder.substr(0, slash)) + "/" + object_name(folder.substr(slash + 1));
}

}  // namespace

Series::Series(hid_t parent, const std::string& path, const std::string& title, std::string folder)
    : group_(create_group(parent, path)),
      folder_(std::move(folder)),
      time_(group_.get(), "time", {"nanoseconds since 1970-01-01 00:00:00", "time"}) {
  set_attribute(group_.get(), "NX_class", "NXdata");
  set_attribute(group_.get(), "title", title);
}

std::string Series::claim(const std::string& name, uint32_t metric) {
  std::string free = name;
  while (!used_names_.insert(free).second) free += "_" + std::to_string(metric);
  return free;
}

Series::Metric& Series::metric_of(uint32_t metric, const GlobalMetric& definition) {
  const auto found = metrics_.find(metric);
  if (found != metrics_.end()) return found->second;
  Metric made;
  // The group is named after the provider already: "perf::task-clock" is task-clock here.
  const std::string name = name_in_provider(definition);
  const size_t prefix = folder_.empty() ? 0 : folder_.size() + 1;
  made.name = claim(object_name(name.substr(prefix)), metric);
  const char* unit = definition.unit.empty() ? "1" : definition.unit.c_str();
  made.values = std::make_unique<SparseColumn>(group_.get(), made.name,
                                               ColumnText{unit, definition.description}, &kNan);
  made.mode = definition.mode == MetricMode::kAccumulated ? "accumulated" : "absolute";
  return metrics_.emplace(metric, std::move(made)).first->second;
}

void Series::add(uint64_t time_ns, uint32_t metric, const GlobalMetric& definition, double value,
                 uint64_t enabled_ns, uint64_t running_ns) {
  if (row_time_ns_ && *row_time_ns_ != time_ns) end_row();
  row_time_ns_ = time_ns;
  Metric& m = metric_of(metric, definition);
  m.values->set(rows_, value);
  const bool is_scaled = running_ns != 0 && running_ns < enabled_ns;
  if (is_scaled && m.scales == nullptr) {
    m.scales = std::make_unique<SparseColumn>(
        group_.get(), claim(m.name + "_scale", metric),
        ColumnText{"1", "enabled / running, already in the value"}, &kUnscaled);
  }
  if (m.scales == nullptr) return;
  m.scales->set(rows_, is_scaled ? static_cast<double>(enabled_ns) / static_cast<double>(running_ns)
                                 : kUnscaled);
}

void Series::end_row() {
  if (!row_time_ns_) return;
  time_.append(static_cast<int64_t>(*row_time_ns_));
  if (rows_ == 0) set_attribute(group_.get(), "start", iso_time(*row_time_ns_));
  ++rows_;
  row_time_ns_.reset();
  if (rows_ % kChunkRows != 0) return;
  for (auto& [id, metric] : metrics_) {
    metric.values->spill();
    if (metric.scales != nullptr) metric.scales->spill();
  }
}

void Series::finish() {
  end_row();
  time_.finish();
  set_attribute(time_.id(), "calendar", "proleptic_gregorian");
  checked(H5DSset_scale(time_.id(), "time"), "dimension");
  std::vector<std::string> auxiliary;
  for (auto& [id, metric] : metrics_) {
    for (SparseColumn* column : {metric.values.get(), metric.scales.get()}) {
      if (column == nullptr) continue;
      column->finish(rows_);
      checked(H5DSattach_scale(column->id(), time_.id(), 0), "dimension");
    }
    set_attribute(metric.values->id(), "mode", metric.mode);
    if (id != metrics_.begin()->first) auxiliary.push_back(metric.name);
  }
  if (!metrics_.empty()) {
    set_attribute(group_.get(), "signal", metrics_.begin()->second.name);
    if (!auxiliary.empty()) set_attribute(group_.get(), "auxiliary_signals", auxiliary);
  }
  set_attribute(group_.get(), "axes", std::vector<std::string>{"time"});
}

SeriesWriter::SeriesWriter(hid_t file, const Model& model)
    : model_(&model), devices_(model), root_(create_group(file, kRootPath)) {
  for (const Group& group : model.groups) world_ += group.rank ? 1 : 0;
  set_attribute(root_.get(), "NX_class", "NXentry");
  set_attribute(root_.get(), "description", "metrics over time, by rank and provider");
}

std::string SeriesWriter::path_of(const Location& location, const std::string& provider) const {
  const Group& group = model_->groups[location.group];
  std::string owner;
  if (location.process == spool::kNodeProcess) {
    owner = numbered("node", group.node, model_->job->nodes.size());
  } else if (group.rank) {
    owner = numbered("rank", *group.rank, world_);
  } else {
    owner = numbered("process", group.id, model_->groups.size());
  }
  return owner + "/" + object_name(provider.empty() ? "samples" : provider);
}

std::string SeriesWriter::claim(const std::string& path) {
  if (used_paths_.empty()) set_attribute(root_.get(), "default", path);
  const auto [found, is_free] = used_paths_.try_emplace(path, 0);
  if (is_free) return path;
  std::string other;
  do {
    other = path + "_" + std::to_string(++found->second);
  } while (!used_paths_.try_emplace(other, 0).second);
  return other;
}

void SeriesWriter::set_coverage(hid_t group, const Location& location) const {
  const Group& owner = model_->groups[location.group];
  const std::string& host = model_->job->nodes[owner.node].host;
  const bool is_node = location.process == spool::kNodeProcess;
  std::string ranks;
  if (is_node) {
    ranks = listed(devices_.ranks_of(owner.node));
  } else if (owner.rank) {
    ranks = std::to_string(*owner.rank);
  }
  set_attribute(group, "node", host);
  set_attribute(group, "ranks", ranks);
  if (is_node) {
    set_attribute(group, "covers", "node " + host + ", also what others do on it");
  } else {
    set_attribute(group, "covers", (owner.rank ? "rank " + ranks : "process") + " on " + host);
  }
}

void SeriesWriter::set_device(hid_t group, const Location& location, const std::string& folder) {
  const uint32_t node = model_->groups[location.group].node;
  const std::string& host = model_->job->nodes[node].host;
  const DeviceFacts facts = devices_.find(node, folder);
  set_attribute(group, "node", host);
  set_attribute(group, "ranks", facts.ranks);
  set_attribute(group, "covers", "GPU " + facts.uuid + " of " + host + ", whoever uses it");
  set_attribute(group, "device", facts.uuid);
  set_attribute(group, "device_name", facts.name);
  set_attribute(group, "pci_address", facts.address);
  set_attribute(group, "numa_nodes", facts.numa_nodes);
  set_attribute(group, "cpus", facts.cpus);
}

void SeriesWriter::begin(const Location& location) { location_ = &location; }

void SeriesWriter::add(const Event& sample) {
  if (sample.region >= model_->metrics.size()) return;
  // Counters that threads set are records as their calls are, and bound by --disk with them.
  const bool is_of_thread = location_->type == LocationType::kThread;
  if (is_of_thread && sample.time_ns < model_->archive_start_ns) return;
  const GlobalMetric& metric = model_->metrics[sample.region];
  // Agents alone tell of devices: whatever a program calls its counters, they are about its rank.
  const bool is_of_node = location_->process == spool::kNodeProcess;
  const std::string folder = is_of_node ? folder_of(name_in_provider(metric)) : std::string();
  std::unique_ptr<Series>& series = open_[{metric.provider, folder}];
  if (series == nullptr) {
    const bool is_of_device = !folder.empty();
    const std::string name =
        is_of_device ? device_path(folder) : path_of(*location_, metric.provider);
    const std::string path = claim(name);
    new_places_.emplace_back(name, path);
    series = std::make_unique<Series>(root_.get(), path, metric.provider + ", " + location_->name,
                                      folder);
    if (is_of_device) {
      set_device(series->group(), *location_, folder);
    } else {
      set_coverage(series->group(), *location_);
    }
  }
  series->add(sample.time_ns, sample.region, metric, std::bit_cast<double>(sample.bytes),
              sample.request, sample.bytes_received);
}

void SeriesWriter::end() {
  for (auto& [key, series] : open_) series->finish();
  open_.clear();
}

Status SeriesWriter::load(StateIn* in) {
  std::string file;
  std::vector<Place> places;
  if (!in->get(&file) || !in->get(&places)) return in->status();
  for (const auto& [name, path] : places) {
    create_external_link(root_.get(), claim(name), file, std::string(kRootPath) + "/" + path);
  }
  return {};
}

void save_series(StateOut* out, const std::string& file, SeriesWriter* series) {
  std::vector<SeriesWriter::Place> places;
  if (series != nullptr) places.swap(series->new_places_);
  out->put(file);
  out->put(places);
}

}  // namespace aon::writers::hdf5
