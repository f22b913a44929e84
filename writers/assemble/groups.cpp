// Groups of the model: which process is which rank.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spool/followed.h"
#include "core/spool/format.h"
#include "writers/assemble/fallback.h"
#include "writers/assemble/model_parts.h"

namespace aon::writers {
namespace {

struct Candidate {
  uint32_t node;
  const spool::Process* process;
  int64_t rank;  ///< -1 none
  int evidence;  ///< of the rank
};

/// MPI knows better than the environment, which is inherited by whatever a rank starts.
int64_t rank_of(const spool::Process& process) {
  const int64_t rank = process.identity ? process.identity->rank : process.start.rank;
  return rank >= 0 && rank < int64_t{kMaxWorld} ? rank : -1;
}

uint32_t world_of(const spool::Process& process) {
  const uint32_t world = process.identity ? process.identity->world_size : process.start.world_size;
  return world <= kMaxWorld ? world : 0;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Name of a process without a rank; one whose definitions are lost has only its number.
std::string other_name(const spool::Process& process) {
  if (process.start.pid == 0) return "process " + std::to_string(process.start.process);
  return base_name(process.program) + " (" + std::to_string(process.start.pid) + ")";
}

/// Of its MPI_COMM_WORLD; 0: not known.
uint64_t world_identity(const spool::Process& process) {
  for (const auto& [id, communicator] : process.communicators) {
    const CommunicatorDefinition& told = communicator.definition;
    if (told.kind == CommunicatorKind::kWorld) return told.identity;
  }
  return 0;
}

/// How well a rank is known to be a process's own: from MPI; of one that recorded; from the
/// environment of one that the agent followed, as of a shell that has started the one that is it.
int evidence_of(const spool::Process& process) {
  if (process.identity) return 2;
  return spool::is_only_followed(process) ? 0 : 1;
}

/// First the best evidence, then in order of time: of two claims to a rank the first one stands.
bool claims_before(const Candidate& a, const Candidate& b) {
  if (a.evidence != b.evidence) return a.evidence > b.evidence;
  if (a.node != b.node) return a.node < b.node;
  if (a.process->start.attach_ticks != b.process->start.attach_ticks) {
    return a.process->start.attach_ticks < b.process->start.attach_ticks;
  }
  return a.process->start.process < b.process->start.process;
}

bool is_empty(const spool::Process& process) {
  return std::all_of(process.streams.begin(), process.streams.end(), [](const auto& stream) {
    return stream.second.committed == 0 && stream.second.refused == 0;
  });
}

bool has_recorded(const spool::Process& process) {
  return std::any_of(process.streams.begin(), process.streams.end(), [](const auto& stream) {
    const auto& [key, counts] = stream;
    return !spool::is_agent_slot(counts.slot) && (counts.committed != 0 || counts.refused != 0);
  });
}

/// What an agent of `node` knows of `process`, which wrote a file of its own because the answer
/// came too late. Programs that were one process in turn by exec() share an identity: those that
/// recorded nothing come first, and of them the one that attached at about the same time.
auto find_late_answer(spool::Node* node, const ProcessStartDefinition& process) {
  auto best = node->processes.end();
  std::pair<bool, uint64_t> least;
  for (auto it = node->processes.begin(); it != node->processes.end(); ++it) {
    const ProcessStartDefinition& start = it->second.start;
    if (start.pid != process.pid || start.start_time_ticks != process.start_time_ticks) continue;
    if (start.fallback != 0) continue;
    const auto [first, second] = std::minmax(start.attach_ticks, process.attach_ticks);
    const std::pair<bool, uint64_t> rank{has_recorded(it->second), second - first};
    if (best != node->processes.end() && rank >= least) continue;
    best = it;
    least = rank;
  }
  return best;
}

/// An agent whose answer came too late knows the process too, as one that never recorded anything
/// (but providers may have sampled it, then it stays as a process without a rank, and none of them
/// is said to be missing). What it saw of the end, and of the CPUs it may run on, belongs to the
/// process that wrote a file.
void join_late_answers(spool::Job* job) {
  std::map<std::string_view, std::vector<spool::Node*>> by_host;
  for (spool::Node& node : job->nodes) by_host[node.host].push_back(&node);
  for (spool::Node& own : job->nodes) {
    for (auto& [own_number, process] : own.processes) {
      if (process.start.fallback == 0) continue;
      for (spool::Node* node : by_host[own.host]) {
        if (node == &own) continue;
        const auto twin = find_late_answer(node, process.start);
        if (twin == node->processes.end()) continue;
        if (process.exit && twin->second.exit) {
          process.exit->exit_code = twin->second.exit->exit_code;
          process.exit->signal = twin->second.exit->signal;
          process.exit->cpu_time_ns = twin->second.exit->cpu_time_ns;
        }
        if (has_recorded(twin->second)) continue;  // it may be another program of the same process
        process.binding = twin->second.binding;
        std::erase_if(process.providers, [&twin](const auto& provider) {
          return provider.second.reason.rfind(kNoAgent, 0) == 0 &&
                 twin->second.providers.count(provider.first) != 0;
        });
        twin->second.start.rank = -1;  // it is that of the process that recorded
        // The node's own series hang below its first process.
        const bool has_series_alone = node->processes.size() == 1 && !node->metrics.empty();
        if (is_empty(twin->second) && !has_series_alone) node->processes.erase(twin);
      }
    }
  }
}

std::vector<Candidate> list_candidates(JobModel* parts) {
  std::vector<Candidate> candidates;
  for (uint32_t n = 0; n < parts->job.nodes.size(); ++n) {
    const spool::Node& node = parts->job.nodes[n];
    for (const auto& [number, process] : node.processes) {
      candidates.push_back({n, &process, rank_of(process), evidence_of(process)});
    }
  }
  std::sort(candidates.begin(), candidates.end(), claims_before);
  return candidates;
}

/// Of several programs under one aon-run the one with most processes has the ranks, of equal ones
/// the first.
void leave_one_world(std::vector<Candidate>* candidates) {
  std::map<uint64_t, size_t> counts;
  for (const Candidate& candidate : *candidates) {
    if (candidate.rank < 0) continue;
    if (const uint64_t world = world_identity(*candidate.process); world != 0) ++counts[world];
  }
  if (counts.empty()) return;
  uint64_t main_world = 0;
  uint32_t main_size = 0;
  for (const Candidate& candidate : *candidates) {
    const uint64_t world = candidate.rank < 0 ? 0 : world_identity(*candidate.process);
    if (world == 0 || (main_world != 0 && counts[world] <= counts[main_world])) continue;
    main_world = world;
    main_size = world_of(*candidate.process);
  }
  for (Candidate& candidate : *candidates) {
    const spool::Process& process = *candidate.process;
    const uint64_t world = world_identity(process);
    // One that did not come to MPI_Init is of that world where its launcher started as many.
    const bool is_of_main = world != 0 ? world == main_world
                                       : process.identity || process.start.world_size == 0 ||
                                             process.start.world_size == main_size;
    if (!is_of_main) candidate.rank = -1;
  }
}

}  // namespace

void build_groups(JobModel* parts) {
  join_late_answers(&parts->job);
  std::vector<Candidate> candidates = list_candidates(parts);
  leave_one_world(&candidates);
  int64_t world = 0;
  bool is_mpi = false;
  for (const Candidate& candidate : candidates) {
    if (candidate.rank < 0) continue;
    world = std::max({world, candidate.rank + 1, int64_t{world_of(*candidate.process)}});
    is_mpi = is_mpi || candidate.process->identity.has_value();
  }
  std::vector<Group>& groups = parts->model.groups;
  groups.resize(static_cast<size_t>(world));
  for (uint32_t rank = 0; rank < groups.size(); ++rank) {
    groups[rank].id = rank;
    groups[rank].rank = rank;
    groups[rank].name = (is_mpi ? "MPI Rank " : "Rank ") + std::to_string(rank);
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.rank >= 0 && groups[static_cast<size_t>(candidate.rank)].process == nullptr) {
      Group& group = groups[static_cast<size_t>(candidate.rank)];
      group.node = candidate.node;
      group.process = candidate.process;
      continue;
    }
    Group& group = groups.emplace_back();
    group.id = static_cast<uint32_t>(groups.size() - 1);
    group.node = candidate.node;
    group.process = candidate.process;
    group.name = other_name(*candidate.process);
  }
}

}  // namespace aon::writers
