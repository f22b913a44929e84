#include "writers/ledger/totals.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "core/spool/format.h"
#include "writers/devices/device_names.h"

namespace aon::writers {
namespace {

/// "GPU-..." of "gpu_GPU-.../health/xid", each sample of which is an event.
std::optional<std::string> gpu_of_xid(const std::string& name) {
  constexpr std::string_view kBegin = "gpu_";
  constexpr std::string_view kEnd = "/health/xid";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  return name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
}

}  // namespace

double NodeEnergy::joules() const {
  double parts_j = 0;
  double platform_j = 0;
  for (const auto& [name, value_j] : domains_j) {
    // Cores and GPU are in the package; the platform has all of them.
    if (name.starts_with("package-") || name.starts_with("dram-")) parts_j += value_j;
    if (name.starts_with("platform-")) platform_j = std::max(platform_j, value_j);
  }
  return is_of_platform() ? platform_j : parts_j;
}

/// Memory alone, beside packages that never count, is not a node's energy.
bool NodeEnergy::is_of_platform() const {
  return std::none_of(domains_j.begin(), domains_j.end(), [](const auto& domain) {
    return domain.first.starts_with("package-") && domain.second > 0;
  });
}

Status TotalsCollector::begin(const Model& model) {
  model_ = &model;
  totals_.energy.resize(model.job->nodes.size());
  totals_.bytes.resize(model.groups.size());
  totals_.node_samples.resize(model.job->nodes.size());
  totals_.group_samples.resize(model.groups.size());
  totals_.gpu_errors.resize(model.job->nodes.size());
  sample_counts_.resize(model.metrics.size());
  for (const GlobalMetric& definition : model.metrics) {
    Metric& metric = metrics_.emplace_back();
    metric.provider = definition.provider;
    metric.name = devices::name_in_provider(definition);
    if (definition.provider == "nvml" && gpu_of_xid(metric.name)) metric.kind = Kind::kXid;
    if (definition.mode != MetricMode::kAccumulated) continue;
    if (definition.provider == "energy" && definition.node_wide) metric.kind = Kind::kEnergy;
    if (definition.provider == "process" && definition.unit == "By") metric.kind = Kind::kBytes;
  }
  return {};
}

Status TotalsCollector::begin_location(const Location& location) {
  location_ = location.type == LocationType::kMetric ? &location : nullptr;
  lost_since_ns_ = UINT64_MAX;
  unsaved_ = location.group;
  return {};
}

Status TotalsCollector::events(std::span<const Event> events) {
  if (location_ == nullptr) return {};
  for (const Event& event : events) {
    if (event.kind == EventKind::kLostBegin)
      lost_since_ns_ = std::min(lost_since_ns_, event.request);  // the oldest ones went (--disk)
    if (event.kind != EventKind::kSample || event.region >= metrics_.size()) continue;
    ++sample_counts_[event.region];
    add(event, metrics_[event.region]);
  }
  return {};
}

void TotalsCollector::add(const Event& sample, const Metric& metric) {
  const Group& group = model_->groups[location_->group];
  const double value = std::bit_cast<double>(sample.bytes);
  if (metric.kind == Kind::kEnergy && location_->process == spool::kNodeProcess) {
    NodeEnergy& energy = totals_.energy[group.node];
    if (!energy.has_samples()) energy.first_ns = std::min(sample.time_ns, lost_since_ns_);
    energy.last_ns = sample.time_ns;
    energy.domains_j[metric.name] = value;
  } else if (metric.kind == Kind::kBytes && location_->process != spool::kNodeProcess) {
    totals_.bytes[group.id][metric.name] = value;
  } else if (metric.kind == Kind::kXid && location_->process == spool::kNodeProcess) {
    const auto number = static_cast<uint32_t>(std::clamp(value, 0.0, 1e9));
    const std::string gpu = gpu_of_xid(metric.name).value_or("");
    ++totals_.gpu_errors[group.node]["Xid " + std::to_string(number) + " of " + gpu];
  }
}

Status TotalsCollector::end_location() {
  if (location_ == nullptr) return {};
  const Group& group = model_->groups[location_->group];
  const bool is_node = location_->process == spool::kNodeProcess;
  SampleCounts& counts =
      is_node ? totals_.node_samples[group.node] : totals_.group_samples[group.id];
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (sample_counts_[i] != 0) counts[metrics_[i].provider] += sample_counts_[i];
    sample_counts_[i] = 0;
  }
  location_ = nullptr;
  return {};
}

Status TotalsCollector::finish(const Outcome&) { return {}; }

Status TotalsCollector::save(StateOut* out) {
  out->put(unsaved_);
  if (!unsaved_) return {};
  const Group& group = model_->groups[*unsaved_];
  const NodeEnergy energy = std::exchange(totals_.energy[group.node], {});
  out->put(energy.domains_j);
  out->put(energy.first_ns);
  out->put(energy.last_ns);
  out->put(std::exchange(totals_.bytes[group.id], {}));
  out->put(std::exchange(totals_.node_samples[group.node], {}));
  out->put(std::exchange(totals_.group_samples[group.id], {}));
  out->put(std::exchange(totals_.gpu_errors[group.node], {}));
  unsaved_.reset();
  return {};
}

/// As if the samples had come here.
Status TotalsCollector::load(StateIn* in) {
  std::optional<uint32_t> id;
  if (!in->get(&id) || !id || !in->check(*id < model_->groups.size())) return in->status();
  NodeEnergy more;
  ProcessBytes bytes;
  SampleCounts node_samples;
  SampleCounts group_samples;
  GpuErrors gpu_errors;
  if (!in->get(&more.domains_j) || !in->get(&more.first_ns) || !in->get(&more.last_ns) ||
      !in->get(&bytes) || !in->get(&node_samples) || !in->get(&group_samples) ||
      !in->get(&gpu_errors))
    return in->status();
  const Group& group = model_->groups[*id];
  NodeEnergy& energy = totals_.energy[group.node];
  if (more.has_samples()) {
    if (!energy.has_samples()) energy.first_ns = more.first_ns;
    energy.last_ns = more.last_ns;
  }
  for (const auto& [name, value_j] : more.domains_j) energy.domains_j[name] = value_j;
  for (const auto& [name, value] : bytes) totals_.bytes[group.id][name] = value;
  for (const auto& [name, count] : node_samples) totals_.node_samples[group.node][name] += count;
  for (const auto& [name, count] : group_samples) totals_.group_samples[group.id][name] += count;
  for (const auto& [name, count] : gpu_errors) totals_.gpu_errors[group.node][name] += count;
  return {};
}

}  // namespace aon::writers
