#include "writers/ledger/sampling.h"

#include <algorithm>
#include <set>
#include <string>

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFunctions = 20;
constexpr size_t kMaxModules = 50;

/// Rates that a process was sampled at, in order.
Json rates_json(const spool::Process& process) {
  Json rates = Json::array();
  for (const SamplingDefinition& sampling : process.sampling) {
    if (rates.empty() || rates.back() != sampling.rate_hz) rates.push_back(sampling.rate_hz);
  }
  return rates;
}

Json modules_json(const Model& model) {
  std::vector<const SymbolReport*> reports;
  for (const SymbolReport& report : model.symbol_reports) {
    if (report.unnamed_count != 0 || !report.remark.empty()) reports.push_back(&report);
  }
  std::stable_sort(reports.begin(), reports.end(), [](const auto* a, const auto* b) {
    return a->unnamed_count > b->unnamed_count;
  });
  if (reports.size() > kMaxModules) reports.resize(kMaxModules);
  Json modules = Json::array();
  for (const SymbolReport* report : reports) {
    modules.push_back({{"module", report->module},
                       {"named", report->named_count},
                       {"unnamed", report->unnamed_count},
                       {"with_line", report->line_count},
                       {"remark", report->remark}});
  }
  return modules;
}

/// Samples of unknown paths stand for as much time as the others, on average.
Json functions_json(const Model& model, std::span<const FunctionCount> functions, uint64_t count) {
  Json list = Json::array();
  uint64_t known_count = 0;
  double period = 0;
  for (const FunctionCount& one : functions) {
    known_count += one.self;
    period += static_cast<double>(one.period);
  }
  if (known_count != 0 && count > known_count)
    period *= static_cast<double>(count) / static_cast<double>(known_count);
  for (const FunctionCount& one : functions.first(std::min(functions.size(), kMaxFunctions))) {
    const GlobalFunction& function = model.functions[one.function];
    const double share = static_cast<double>(one.period) / std::max(period, 1.0);
    list.push_back({{"function", function.name},
                    {"module", function.module},
                    {"samples", one.self},
                    {"percent", 100 * share}});
  }
  return list;
}

}  // namespace

std::vector<FunctionCount> hot_functions(const Model& model,
                                         std::span<const profile::CallPathCount> counts) {
  std::vector<FunctionCount> functions(model.functions.size());
  for (size_t i = 0; i < functions.size(); ++i) functions[i].function = static_cast<uint32_t>(i);
  for (size_t i = 0; i < counts.size(); ++i) {
    FunctionCount& function = functions[model.call_paths[i].function];
    function.self += counts[i].self;
    function.period += counts[i].self_period;
  }
  std::erase_if(functions, [](const FunctionCount& one) { return one.self == 0; });
  std::stable_sort(functions.begin(), functions.end(),
                   [](const auto& a, const auto& b) { return a.period > b.period; });
  return functions;
}

Json sampling_json(const Model& model, std::span<const LocationTally> tallies,
                   std::span<const FunctionCount> functions) {
  uint64_t count = 0;
  uint64_t lost = 0;
  for (const LocationTally& tally : tallies) {
    if (tally.location->type != LocationType::kSamples) continue;
    count += tally.call_samples;
    lost += tally.lost_count();
  }
  if (count + lost == 0) return {};
  Json rates = Json::array();
  std::string event;
  for (const Group& group : model.groups) {
    if (group.process == nullptr || group.process->sampling.empty()) continue;
    event = group.process->sampled_event;
    const Json own = rates_json(*group.process);
    if (own.size() > rates.size()) rates = own;
  }
  uint64_t known = 0;
  for (const FunctionCount& one : functions) known += one.self;
  return {{"event", event},
          {"rates_hz", rates},
          {"samples", count},
          {"lost", lost},
          {"of_unknown_path", count - std::min(count, known)},
          {"call_paths", model.call_paths.size()},
          {"functions", functions_json(model, functions, std::max<uint64_t>(count, 1))},
          {"modules_without_all_names", modules_json(model)}};
}

}  // namespace aon::writers::ledger
