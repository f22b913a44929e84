#include "tools/assembly.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "core/base/file.h"
#include "core/cluster/presence.h"
#include "core/delivery/marks.h"
#include "core/spool/files.h"
#include "tools/joining.h"
#include "tools/ledger_summary.h"
#include "writers/assemble/assemble.h"
#include "writers/assemble/leftover_rings.h"
#include "writers/assemble/publish.h"

namespace aon::tools {
namespace {

using cluster::NodePresence;
using cluster::Presence;

/// What a courier has not brought, or in part, was joined from where its node has recorded, whose
/// agent was not lost.
bool was_joined(const std::string& dir, const NodePresence& node) {
  namespace fs = std::filesystem;
  const std::string note = dir + "/spool/" + node.node + "/" + spool::kOriginFile;
  const Result<std::string> origin = read_text_file(note);
  if (!origin || !origin->starts_with("/")) return false;  // kBroughtOrigin, or its own
  const auto there = cluster::read_presence(fs::path(*origin).parent_path().parent_path());
  return std::none_of(there.begin(), there.end(), [&](const NodePresence& one) {
    return one.node == node.node && one.presence == Presence::kLost;
  });
}

std::map<std::string, std::string> lost_nodes(const std::string& dir,
                                              const std::vector<NodePresence>& nodes) {
  std::map<std::string, std::string> lost;
  for (const NodePresence& one : nodes) {
    if (one.presence != Presence::kLost) continue;
    if (delivery::is_mark_of_guest(dir, one) && was_joined(dir, one)) continue;
    lost[one.node] = one.note;
  }
  return lost;
}

/// The spool may go when nobody has begun, gone on or been lost since `before`: what those have
/// written, or still write, is in no archive.
bool is_nobody_left(const std::string& dir, const std::vector<NodePresence>& before) {
  for (const NodePresence& now : cluster::read_presence(dir)) {
    const bool was_there = std::any_of(before.begin(), before.end(), [&](const NodePresence& one) {
      return one.node == now.node && cluster::is_same_agent(one.token, now.token);
    });
    if (now.presence != Presence::kDone || !was_there) return false;
  }
  return !cluster::is_lease_awaited(dir);
}

/// Whose agents wait for the archive and see the same directory, but for ours.
std::vector<std::string> waiting_nodes(const std::vector<NodePresence>& nodes,
                                       const std::string& own) {
  std::vector<std::string> waiting;
  for (const NodePresence& one : nodes) {
    const bool waits = one.presence == Presence::kDone && cluster::takes_shares(one);
    if (waits && one.node != own) waiting.push_back(one.node);
  }
  return waiting;
}

/// Another node has made the archive since this one's agent has looked.
bool is_in_archive(const FinalizeOptions& options, const std::vector<NodePresence>& nodes) {
  if (options.node.empty()) return false;  // its agent could leave no mark
  return std::none_of(nodes.begin(), nodes.end(), [&](const NodePresence& one) {
    return one.node == options.node && one.presence == Presence::kDone;
  });
}

constexpr int64_t kClockStepMs = 2000;  ///< of time stamps of a file system, and some more

/// Whether the assembly of the archive began after the last change of the spool, and made all of
/// it. All times are the file system's; a ledger is written at the end of what it tells the
/// duration of.
bool is_up_to_date(const std::string& dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_time_type end = fs::last_write_time(dir + "/aon.json", error);
  const Result<nlohmann::json> ledger = read_ledger(dir);
  if (error || !ledger || ledger->value("/job/snapshot"_json_pointer, false)) return false;
  if (!ledger->value("/assembly/failed"_json_pointer, nlohmann::json()).empty()) return false;
  const auto seconds = ledger->value("/assembly/seconds"_json_pointer, -1.0);
  if (seconds < 0) return false;
  const auto begin =
      end - std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000) + kClockStepMs);
  // Folders, too: what was joined or moved there has times of its own.
  if (fs::last_write_time(dir + "/spool", error) > begin || error) return false;
  for (fs::recursive_directory_iterator at(dir + "/spool", error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->last_write_time(error) > begin || error) return false;
  }
  if (error) return false;
  const std::vector<fs::path> rings = writers::find_leftover_rings(dir).own;
  return std::all_of(rings.begin(), rings.end(), [&](const fs::path& file) {
    return fs::equivalent(file.parent_path().parent_path(), fs::path(dir) / "spool", error);
  });
}

constexpr uint32_t kMostJobs = 256;

/// Of which this process may use one each.
uint32_t core_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

}  // namespace

namespace {

/// The archive is whole without it.
void try_leave_summary(const std::string& dir) {
  if (Status status = leave_summary(dir, summary_of(dir)); !status)
    fmt::print(stderr, "aon finalize: no summary.txt: {}\n", status.error().message);
}

}  // namespace

Status complete_dropped(const std::string& dir) {
  const auto lease = writers::AssemblyLease::take(dir);
  if (!lease) return lease.error();
  Status status = writers::remove_stale_staging(dir);
  try_leave_summary(dir);
  cluster::mark_assembled(dir, cluster::read_presence(dir));
  return status;
}

Result<std::vector<std::string>> assemble_job(const FinalizeOptions& options) {
  // Nodes are joined, and their marks read and removed, while nobody else assembles: who comes next
  // sees all or none.
  const auto lease = writers::AssemblyLease::take(options.dirs.front());
  if (!lease) return lease.error();
  if (Status status = join_directories(options.dirs); !status) return status.error();
  const std::vector<NodePresence> nodes = cluster::read_presence(options.dirs.front());
  if (options.from_agent && is_in_archive(options, nodes)) return std::vector<std::string>();
  if (options.if_needed && is_up_to_date(options.dirs.front())) {
    // Whoever made the archive may have died before these.
    try_leave_summary(options.dirs.front());
    if (!options.snapshot) cluster::mark_assembled(options.dirs.front(), nodes);
    return std::vector<std::string>();
  }
  writers::AssembleOptions wanted;
  wanted.otf2_locations = static_cast<uint32_t>(options.otf2_location_count);
  wanted.nccl_as_mpi = options.nccl_as_mpi;
  wanted.symbol_search = options.symbol_search;
  wanted.drops_spool = options.drop_spool;
  wanted.is_snapshot = options.snapshot;
  wanted.disk_cap_bytes = options.disk_bytes;
  wanted.lost_nodes = lost_nodes(options.dirs.front(), nodes);
  wanted.share_count = std::min(options.jobs == 0 ? core_count() : options.jobs, kMostJobs);
  if (options.from_agent) wanted.waiting_nodes = waiting_nodes(nodes, options.node);
  if (options.least_shared_records != 0) wanted.least_shared_records = options.least_shared_records;
  wanted.may_drop_spool = [&] {
    // A command by hand may drop what lost nodes left: who gives it has seen the ledger. An agent
    // that waits for an earlier one's lease records into that spool.
    if (!options.from_agent) return !cluster::is_lease_awaited(options.dirs.front());
    return is_nobody_left(options.dirs.front(), nodes);
  };
  const Result<writers::AssembleReport> report =
      writers::assemble(options.dirs.front(), wanted, lease->get());
  if (!report) return report.error();
  const std::vector<std::string>& warnings = report->warnings;
  for (size_t i = report->failures.size(); i < warnings.size(); ++i)
    fmt::print(stderr, "aon finalize: {}\n", warnings[i]);
  try_leave_summary(options.dirs.front());
  if (!options.snapshot) cluster::mark_assembled(options.dirs.front(), nodes);
  return report->failures;
}

}  // namespace aon::tools
