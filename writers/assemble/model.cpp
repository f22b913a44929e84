#include "writers/assemble/model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "writers/assemble/clocks.h"
#include "writers/assemble/fallback.h"
#include "writers/assemble/model_parts.h"

namespace aon::writers {

namespace {

/// The agent of a node that had no room for a process has said so; the process could not know.
void tell_refusals(std::vector<spool::Node>* nodes) {
  std::map<std::string, const spool::Provider*> refusals;
  for (const spool::Node& node : *nodes) {
    const auto memory = node.providers.find("memory");
    if (memory != node.providers.end() && memory->second.state == ProviderState::kDegraded)
      refusals[node.host] = &memory->second;
  }
  for (spool::Node& node : *nodes) {
    const auto refusal = refusals.find(node.host);
    if (refusal == refusals.end()) continue;
    for (auto& [number, process] : node.processes) {
      for (auto& [name, provider] : process.providers) {
        if (process.start.fallback == 0 || provider.reason != kNoAgent) continue;
        provider.reason += ": " + refusal->second->reason;
        provider.remedy = refusal->second->remedy;
      }
    }
  }
}

/// What was left out of the whole node no agent would have collected either: the node says why.
void tell_once_what_is_off(std::vector<spool::Node>* nodes) {
  std::map<std::string, std::set<std::string>> off;
  for (const spool::Node& node : *nodes) {
    for (const auto& [name, provider] : node.providers) {
      if (provider.state == ProviderState::kOff) off[node.host].insert(name);
    }
  }
  for (spool::Node& node : *nodes) {
    const auto names = off.find(node.host);
    if (names == off.end()) continue;
    for (auto& [number, process] : node.processes) {
      if (process.start.fallback == 0) continue;
      std::erase_if(process.providers, [&names](const auto& provider) {
        return provider.second.reason == kNoAgent && names->second.count(provider.first) != 0;
      });
    }
  }
}

}  // namespace

Result<std::unique_ptr<JobModel>> build_model(const std::filesystem::path& folder,
                                              uint32_t otf2_locations,
                                              const symbols::DebugSearch& search,
                                              bool has_call_paths) {
  Result<spool::Job> job = spool::read_job(folder);
  if (!job) return job.error();
  auto parts = std::make_unique<JobModel>();
  parts->job = std::move(job).value();
  // Folders that hold nothing yet, or only a ring file that became a folder of its own.
  std::erase_if(parts->job.nodes, [](const spool::Node& node) {
    return node.processes.empty() && node.definition.format == 0;
  });
  tell_once_what_is_off(&parts->job.nodes);
  tell_refusals(&parts->job.nodes);
  parts->model.job = &parts->job;
  for (const spool::Node& node : parts->job.nodes) {
    Result<std::map<uint32_t, std::vector<spool::SegmentName>>> segments =
        spool::list_segments(node.folder);
    if (!segments) return segments.error();
    parts->segments.push_back(std::move(segments).value());
  }
  build_groups(parts.get());
  build_clocks(parts.get());
  const bool has_agent =
      std::any_of(parts->job.nodes.begin(), parts->job.nodes.end(),
                  [](const spool::Node& node) { return node.definition.format != 0; });
  if (parts->model.groups.empty() && !has_agent) {
    return Error{Code::kNotFound,
                 "no process in " + (folder / "spool").string() + ": nothing was recorded"};
  }
  build_regions(parts.get());
  build_communicators(parts.get());
  build_windows(parts.get());
  build_files(parts.get());
  build_open_calls(parts.get());
  build_stacks(parts.get(), search);
  if (has_call_paths) build_call_paths(parts.get(), search);
  Status status = build_locations(parts.get(), otf2_locations);
  if (!status) return status.error();
  return parts;
}

}  // namespace aon::writers
