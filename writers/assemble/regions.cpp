// Regions and metrics of the model: what has the same name and kind in many processes is one.

#include <map>
#include <string>
#include <tuple>

#include "writers/assemble/model_parts.h"
#include "writers/symbols/readable_name.h"

namespace aon::writers {
namespace {

class RegionUnifier {
 public:
  explicit RegionUnifier(std::vector<GlobalRegion>* regions) : regions_(regions) {}

  uint32_t id_of(const spool::Region& region) {
    // Kernels come with the compiler's names.
    const std::string name =
        region.paradigm == Paradigm::kCuda ? symbols::readable_name(region.name) : region.name;
    const auto [entry, is_new] = ids_.try_emplace({name, region.paradigm, region.role},
                                                  static_cast<uint32_t>(regions_->size()));
    if (is_new) regions_->push_back({name, region.role, region.paradigm});
    return entry->second;
  }

 private:
  std::vector<GlobalRegion>* regions_;
  std::map<std::tuple<std::string, Paradigm, RegionRole>, uint32_t> ids_;
};

class MetricUnifier {
 public:
  explicit MetricUnifier(std::vector<GlobalMetric>* metrics) : metrics_(metrics) {}

  uint32_t id_of(const spool::Metric& metric, bool node_wide) {
    const auto [entry, is_new] = ids_.try_emplace({metric.name, metric.unit, node_wide},
                                                  static_cast<uint32_t>(metrics_->size()));
    if (is_new) {
      metrics_->push_back({.name = metric.name,
                           .unit = metric.unit,
                           .description = metric.description,
                           .provider = provider_of(metric.name),
                           .mode = metric.definition.mode,
                           .node_wide = node_wide});
    }
    return entry->second;
  }

 private:
  /// Metrics are named "provider.metric" or "provider::metric".
  static std::string provider_of(const std::string& name) {
    const size_t at = name.find_first_of(".:");
    return at == std::string::npos ? "aon" : name.substr(0, at);
  }

  std::vector<GlobalMetric>* metrics_;
  std::map<std::tuple<std::string, std::string, bool>, uint32_t> ids_;
};

}  // namespace

void build_regions(JobModel* parts) {
  Model& model = parts->model;
  RegionUnifier regions(&model.regions);
  const uint32_t unknown =
      regions.id_of({"[unknown region]", RegionRole::kFunction, Paradigm::kAon});
  MetricUnifier metrics(&model.metrics);
  // The archive's readers want the metrics of threads first.
  for (uint32_t i = 0; i < kMaxRegionCounters; ++i) {
    for (const Group& group : model.groups) {
      if (group.process == nullptr) continue;
      const auto counter = group.process->metrics.find(kFirstCounterMetric + i);
      if (counter != group.process->metrics.end()) metrics.id_of(counter->second, false);
    }
  }
  model.counter_count = static_cast<uint32_t>(model.metrics.size());
  for (Group& group : model.groups) {
    group.region_map[kUnknownRegion] = unknown;
    if (group.process == nullptr) continue;
    const std::map<uint32_t, spool::Region> ordered(group.process->regions.begin(),
                                                    group.process->regions.end());
    for (const auto& [local, region] : ordered) group.region_map[local] = regions.id_of(region);
    for (const auto& [local, metric] : group.process->metrics) {
      group.metric_map[local] = metrics.id_of(metric, metric.definition.node_wide != 0);
    }
  }
  parts->node_metric_maps.resize(parts->job.nodes.size());
  for (size_t n = 0; n < parts->job.nodes.size(); ++n) {
    for (const auto& [local, metric] : parts->job.nodes[n].metrics) {
      parts->node_metric_maps[n][local] = metrics.id_of(metric, true);
    }
  }
}

}  // namespace aon::writers
