#include "writers/ledger/ledger_ranks.h"

#include <map>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "core/spool/format.h"
#include "writers/ledger/ledger_nccl.h"
#include "writers/profile/silent.h"

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

const char* state_name(ProviderState state) {
  switch (state) {
    case ProviderState::kOn:
      return "on";
    case ProviderState::kDegraded:
      return "degraded";
    case ProviderState::kOff:
      break;
  }
  return "off";
}

/// Tallies of one group, added up.
struct GroupSums {
  uint64_t emitted = 0;
  uint64_t spooled = 0;
  uint64_t lost = 0;
  SampleCounts samples;  ///< of counters, by provider
  uint64_t call_samples = 0;
  uint64_t call_samples_lost = 0;
  uint64_t counters = 0;  ///< the program's own
  uint64_t border_counters = 0;
  uint64_t inexact_counters = 0;
  uint64_t by_paradigm[kParadigmCount] = {};
  Json threads = Json::array();
};

int32_t tid_of(const spool::Process* process, uint16_t slot) {
  if (process == nullptr) return 0;
  const auto found = process->streams.find({slot, 0});
  return found == process->streams.end() ? 0 : found->second.tid;
}

std::vector<GroupSums> sum_groups(const LedgerFacts& facts) {
  std::vector<GroupSums> sums(facts.model->groups.size());
  for (size_t g = 0; facts.totals != nullptr && g < sums.size(); ++g)
    sums[g].samples = facts.totals->group_samples[g];
  for (const LocationTally& tally : facts.tallies) {
    const Location& location = *tally.location;
    GroupSums& sum = sums[location.group];
    if (location.process == spool::kNodeProcess) continue;
    sum.call_samples += tally.call_samples;
    if (location.type == LocationType::kSamples) sum.call_samples_lost += tally.lost_count();
    if (location.type != LocationType::kThread) continue;
    sum.counters += tally.samples;
    sum.border_counters += tally.counters;
    sum.inexact_counters += tally.inexact_counters;
    sum.emitted += tally.emitted();
    sum.spooled += tally.decoded;
    sum.lost += tally.lost_count();
    for (size_t p = 0; p < kParadigmCount; ++p) sum.by_paradigm[p] += tally.by_paradigm[p];
    const Group& group = facts.model->groups[location.group];
    if (group.process == nullptr) continue;
    sum.threads.push_back({{"location", location.id},
                           {"tid", tid_of(group.process, location.slot)},
                           {"emitted", tally.emitted()},
                           {"spooled", tally.decoded},
                           {"lost", tally.lost_count()}});
  }
  return sums;
}

uint64_t samples_of(const std::string& provider, const SampleCounts& counts) {
  const auto found = counts.find(provider);
  return found == counts.end() ? 0 : found->second;
}

/// Records that provider `name` emitted, as far as their paradigm tells whose they are.
uint64_t records_of(const std::string& name, const GroupSums& sums) {
  auto of = [&](Paradigm paradigm) { return sums.by_paradigm[static_cast<size_t>(paradigm)]; };
  if (name == "mpi") return of(Paradigm::kMpi);
  if (name == "annotate") return of(Paradigm::kUser) + sums.counters;
  if (name == "counters") return sums.border_counters;
  if (name == "nvtx") return of(Paradigm::kNvtx);
  if (name == "nccl") return of(Paradigm::kNccl);
  if (name == "cupti" || name == "cuda") return of(Paradigm::kCuda);
  if (name == "sampling") return sums.call_samples;
  return samples_of(name, sums.samples);
}

Json provider_json(const spool::Provider& provider, uint64_t emitted, uint64_t lost) {
  return {{"state", state_name(provider.state)},
          {"reason", provider.reason},
          {"remedy", provider.remedy},
          {"emitted", emitted + lost},
          {"lost", lost}};
}

void degrade(spool::Provider* provider, const std::string& reason, const char* remedy) {
  provider->state = ProviderState::kDegraded;
  provider->reason += (provider->reason.empty() ? "" : "; ") + reason;
  provider->remedy += (provider->remedy.empty() ? "" : "; ") + std::string(remedy);
}

/// Counters that were off the PMU for a part of a call say so.
spool::Provider with_inexact(const std::string& name, spool::Provider provider,
                             const GroupSums& sums) {
  if (name != "counters" || sums.inexact_counters == 0) return provider;
  degrade(&provider,
          std::to_string(sums.inexact_counters) + " of " + std::to_string(sums.border_counters) +
              " calls are not in the sums: other events took turns with the counters",
          "fewer events in --events, --sampling 0, or no other profiler");
  return provider;
}

/// The level that was asked for is not all that was recorded.
spool::Provider with_lowered_level(const std::string& name, spool::Provider provider,
                                   const spool::Process& process) {
  const std::string lowered = name == "nccl" ? lowered_level(process) : std::string();
  if (!lowered.empty()) degrade(&provider, lowered, "a larger --budget or a lower --nccl-level");
  return provider;
}

/// A lost record does not say whose it was: losses stand with a provider only where it is the only
/// one that wrote records.
Json providers_json(const spool::Process& process, const GroupSums& sums) {
  Json providers = Json::object();
  for (const auto& [name, provider] : process.providers) {
    const uint64_t emitted = records_of(name, sums);
    const bool is_only_one = emitted != 0 && emitted == sums.spooled;
    const uint64_t lost = name == "sampling" ? sums.call_samples_lost : is_only_one ? sums.lost : 0;
    const spool::Provider exact = with_inexact(name, provider, sums);
    providers[name] = provider_json(with_lowered_level(name, exact, process), emitted, lost);
  }
  return providers;
}

Json exit_json(const spool::Process& process) {
  if (!process.exit) return {{"code", nullptr}, {"signal", 0}};
  const int32_t code = process.exit->exit_code;
  return {{"code", code < 0 ? Json() : Json(code)}, {"signal", process.exit->signal}};
}

/// Bytes that the process read and wrote; null where nobody counted them.
Json io_json(const LedgerFacts& facts, const Group& group) {
  if (facts.totals == nullptr || facts.totals->bytes[group.id].empty()) return nullptr;
  Json bytes = Json::object();
  for (const auto& [name, value] : facts.totals->bytes[group.id]) {
    bytes[name] = static_cast<uint64_t>(value);
  }
  return bytes;
}

/// Joules by domain, of the node and whoever used it; null where it does not tell.
Json node_energy_json(const LedgerFacts& facts, size_t node) {
  if (facts.totals == nullptr || !facts.totals->energy[node].is_known()) return nullptr;
  const NodeEnergy& energy = facts.totals->energy[node];
  return {{"joules", energy.joules()},
          {"seconds", energy.seconds()},
          {"node_wide", true},
          {"domains", energy.domains_j}};
}

Json refused_json(const spool::DefinitionsRefused& refused) {
  return {{"pool full", refused.by_pool}, {"disk", refused.by_disk}};
}

uint64_t counted_calls(const spool::Process& process) {
  uint64_t sum = 0;
  for (const auto& [key, count] : process.counts) sum += count;
  return sum;
}

/// True of what providers sampled of a process whose agent answered too late: the process itself
/// wrote a file, and is a group of its own.
bool is_late_answer(const std::set<Identity>& with_file, const Identity& process,
                    const GroupSums& sums) {
  return sums.emitted == 0 && with_file.count(process) != 0;
}

Json group_json(const LedgerFacts& facts, const std::set<Identity>& with_file, const Group& group,
                GroupSums* sums) {
  Json entry;
  entry["rank"] = group.rank ? Json(*group.rank) : Json();
  if (group.process == nullptr) {
    entry["state"] = "no records";
    for (const char* key : {"process", "world", "node", "pid", "program"}) entry[key] = nullptr;
    entry["exit"] = {{"code", nullptr}, {"signal", 0}};
    entry["memory_bytes"] = 0;
    entry["io_bytes"] = nullptr;
    entry["emitted"] = entry["spooled"] = entry["lost"] = 0;
    entry["threads"] = Json::array();
    entry["providers"] = Json::object();
    return entry;
  }
  const spool::Process& process = *group.process;
  entry["process"] = group.id;
  entry["world"] = process.identity ? process.identity->world_size : process.start.world_size;
  entry["node"] = facts.model->job->nodes[group.node].host;
  entry["pid"] = process.start.pid;
  entry["program"] = process.program;
  entry["exit"] = exit_json(process);
  entry["memory_bytes"] = process.exit ? process.exit->memory_bytes : 0;
  entry["io_bytes"] = io_json(facts, group);
  entry["emitted"] = sums->emitted;
  entry["spooled"] = sums->spooled;
  entry["lost"] = sums->lost;
  if (const uint64_t counted = counted_calls(process); counted != 0) entry["counted"] = counted;
  if (process.refused_definitions.sum() != 0)
    entry["lost_definitions"] = refused_json(process.refused_definitions);
  // With damaged definitions there may be records of one that seems to have told nothing.
  const bool is_silent = profile::is_silent(group) && sums->emitted == 0;
  if (process.start.fallback != 0) {
    entry["fallback"] = true;
  } else if (is_late_answer(with_file, identity_of(*facts.model, group), *sums)) {
    entry["late_answer"] = true;
  } else if (is_silent && group.node < facts.clocks.size()) {
    entry["followed_since"] = iso_time(facts.clocks[group.node].to_ns(process.start.attach_ticks));
  }
  entry["threads"] = std::move(sums->threads);
  entry["providers"] = providers_json(process, *sums);
  return entry;
}

}  // namespace

Identity identity_of(const Model& model, const Group& group) {
  const ProcessStartDefinition& start = group.process->start;
  return {model.job->nodes[group.node].host, start.pid, start.start_time_ticks};
}

std::set<Identity> with_file_of_their_own(const Model& model) {
  std::set<Identity> found;
  for (const Group& group : model.groups) {
    if (group.process != nullptr && group.process->start.fallback != 0)
      found.insert(identity_of(model, group));
  }
  return found;
}

Json ranks_json(const LedgerFacts& facts) {
  std::vector<GroupSums> sums = sum_groups(facts);
  const std::set<Identity> with_file = with_file_of_their_own(*facts.model);
  Json ranks = Json::array();
  for (const Group& group : facts.model->groups) {
    ranks.push_back(group_json(facts, with_file, group, &sums[group.id]));
  }
  return ranks;
}

Json counted_json(const LedgerFacts& facts) {
  std::map<std::string, uint64_t> by_region;
  for (const Group& group : facts.model->groups) {
    if (group.process == nullptr) continue;
    for (const auto& [key, count] : group.process->counts) {
      const auto global = group.region_map.find(key.second);
      if (global == group.region_map.end()) continue;
      by_region[facts.model->regions[global->second].name] += count;
    }
  }
  return by_region;
}

Json nodes_json(const LedgerFacts& facts) {
  Json nodes = Json::array();
  const std::vector<spool::Node>& job_nodes = facts.model->job->nodes;
  std::vector<uint64_t> samples(job_nodes.size());
  for (const LocationTally& tally : facts.tallies) {
    const uint32_t node = facts.model->groups[tally.location->group].node;
    if (tally.location->process == spool::kNodeProcess && node < samples.size())
      samples[node] += tally.samples;
  }
  for (size_t n = 0; n < job_nodes.size(); ++n) {
    Json providers = Json::object();
    const SampleCounts counts =
        facts.totals == nullptr ? SampleCounts{} : facts.totals->node_samples[n];
    for (const auto& [name, provider] : job_nodes[n].providers) {
      providers[name] = provider_json(provider, samples_of(name, counts), 0);
    }
    nodes.push_back({{"node", job_nodes[n].host},
                     {"processes", job_nodes[n].processes.size()},
                     {"samples", samples[n]},
                     {"energy", node_energy_json(facts, n)},
                     {"providers", std::move(providers)}});
    if (job_nodes[n].refused_definitions.sum() != 0)
      nodes.back()["lost_definitions"] = refused_json(job_nodes[n].refused_definitions);
  }
  return nodes;
}

}  // namespace aon::writers::ledger
