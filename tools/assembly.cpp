#include "tools/assembly.h"

#include <fmt/format.h>

#include <cstdio>

#include "core/cluster/presence.h"
#include "tools/joining.h"
#include "writers/assemble/assemble.h"

namespace aon::tools {
namespace {

/// What the nodes' agents are at before the assembly begins: the spools of those that are done are
/// whole in it.
struct Presences {
  std::vector<std::string> done;
  std::vector<std::string> lost;
};

Presences read_presences(const std::string& dir) {
  Presences result;
  for (const cluster::NodePresence& one : cluster::read_presence(dir)) {
    if (one.presence == cluster::Presence::kDone) result.done.push_back(one.node);
    if (one.presence == cluster::Presence::kLost) result.lost.push_back(one.node);
  }
  return result;
}

}  // namespace

Status assemble_job(const FinalizeOptions& options) {
  if (Status status = join_directories(options.dirs); !status) return status;
  writers::AssembleOptions wanted;
  wanted.otf2_locations = static_cast<uint32_t>(options.otf2_location_count);
  wanted.uses_debuginfod = options.uses_debuginfod;
  wanted.drops_spool = options.drop_spool;
  wanted.is_snapshot = options.snapshot;
  wanted.disk_cap_bytes = options.disk_bytes;
  const Presences presences = read_presences(options.dirs.front());
  wanted.lost_nodes = presences.lost;
  // Another node's agent was faster, and has ours in its archive.
  if (options.from_agent && presences.done.empty()) return {};
  const Result<writers::AssembleReport> report = writers::assemble(options.dirs.front(), wanted);
  if (!report) return report.error();
  for (const std::string& warning : report->warnings)
    fmt::print(stderr, "aon finalize: {}\n", warning);
  if (!options.snapshot) cluster::mark_assembled(options.dirs.front(), presences.done);
  return {};
}

}  // namespace aon::tools
