// Regions and metrics of the model: what has the same name and kind in many processes is one.

#include <aon/nccl_level.h>

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "writers/assemble/border_counters.h"
#include "writers/assemble/model_parts.h"
#include "writers/symbols/readable_names.h"

namespace aon::writers {
namespace {

class RegionUnifier {
 public:
  RegionUnifier(const std::vector<Group>& groups, std::vector<GlobalRegion>* regions)
      : regions_(regions), kernel_names_(readable_kernels(groups)) {}

  /// By the name that all shares of a job have: of kernels whose name a helper had to read, the
  /// compiler's, as not each may have read it.
  uint32_t id_of(const spool::Region& region) {
    const std::string& name = readable(region);
    const auto [entry, is_new] = ids_.try_emplace(
        {symbols::is_read_alike(region.name) ? name : region.name, region.paradigm, region.role},
        static_cast<uint32_t>(regions_->size()));
    if (is_new) regions_->push_back({name, region.role, region.paradigm});
    return entry->second;
  }

 private:
  using Names = std::map<std::string, std::string>;

  /// Kernels come with the compiler's names.
  static Names readable_kernels(const std::vector<Group>& groups) {
    std::set<std::string> seen;
    for (const Group& group : groups) {
      if (group.process == nullptr) continue;
      for (const auto& [local, region] : group.process->regions)
        if (region.paradigm == Paradigm::kCuda) seen.insert(region.name);
    }
    const std::vector<std::string> raw(seen.begin(), seen.end());
    const std::vector<std::string> readable = symbols::readable_names(raw);
    Names names;
    for (size_t i = 0; i < raw.size(); ++i) names[raw[i]] = readable[i];
    return names;
  }

  const std::string& readable(const spool::Region& region) const {
    if (region.paradigm != Paradigm::kCuda) return region.name;
    const auto kernel = kernel_names_.find(region.name);
    return kernel == kernel_names_.end() ? region.name : kernel->second;
  }

  std::vector<GlobalRegion>* regions_;
  const Names kernel_names_;  ///< by the compiler's
  std::map<std::tuple<std::string, Paradigm, RegionRole>, uint32_t> ids_;
};

class MetricUnifier {
 public:
  explicit MetricUnifier(std::vector<GlobalMetric>* metrics) : metrics_(metrics) {}

  /// Counters at the borders of calls are no others, whatever their name: these have samples.
  uint32_t id_of(const spool::Metric& metric, bool is_counter, bool node_wide) {
    const auto [entry, is_new] = ids_.try_emplace({metric.name, metric.unit, is_counter, node_wide},
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
  std::map<std::tuple<std::string, std::string, bool, bool>, uint32_t> ids_;
};

}  // namespace

void build_regions(JobModel* parts) {
  Model& model = parts->model;
  RegionUnifier regions(model.groups, &model.regions);
  const uint32_t unknown =
      regions.id_of({"[unknown region]", RegionRole::kFunction, Paradigm::kAon});
  MetricUnifier metrics(&model.metrics);
  // The archive's readers want the metrics of threads first.
  for (uint32_t i = 0; i < kMaxRegionCounters; ++i) {
    for (const Group& group : model.groups) {
      if (group.process == nullptr) continue;
      const auto counter = group.process->metrics.find(kFirstCounterMetric + i);
      if (counter != group.process->metrics.end()) metrics.id_of(counter->second, true, false);
    }
  }
  model.counter_count = static_cast<uint32_t>(model.metrics.size());
  for (Group& group : model.groups) {
    group.region_map[kUnknownRegion] = unknown;
    if (group.process == nullptr) continue;
    const std::map<uint32_t, spool::Region> ordered(group.process->regions.begin(),
                                                    group.process->regions.end());
    for (const auto& [local, region] : ordered) {
      const bool is_none = local == kNcclLimitsSite || local == kNcclUncountedSite;
      if (!is_none) group.region_map[local] = regions.id_of(region);
    }
    for (const auto& [local, metric] : group.process->metrics) {
      const bool is_counter = is_border_counter(local);
      const bool node_wide = !is_counter && metric.definition.node_wide != 0;
      group.metric_map[local] = metrics.id_of(metric, is_counter, node_wide);
    }
  }
  parts->node_metric_maps.resize(parts->job.nodes.size());
  for (size_t n = 0; n < parts->job.nodes.size(); ++n) {
    for (const auto& [local, metric] : parts->job.nodes[n].metrics) {
      parts->node_metric_maps[n][local] = metrics.id_of(metric, false, true);
    }
  }
}

}  // namespace aon::writers
