/// aon.json: what was recorded, what was not and why, and what it cost. docs/architecture.md has
/// the keys that stay; more may come.
///
/// The law: per thread, emitted = spooled + lost, with `spooled` the records that were read back
/// and `lost` the sum over LossReason.
/// Owner: the assembler.   Thread: one.   Cost: about 400 bytes per rank; one line per rank in
/// files of many ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/clock/clock_map.h"
#include "writers/ledger/tally.h"
#include "writers/ledger/totals.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {
namespace ledger {
struct FunctionCount;
}

struct LedgerFacts {
  const Model* model = nullptr;
  std::span<const clock::ClockMap> clocks;  ///< by node
  std::span<const LocationTally> tallies;   ///< in order of Model::locations
  Outcome outcome;
  std::vector<std::string> findings;
  std::vector<std::string> warnings;  ///< of the assembly: writers that failed, what was left out
  std::vector<std::string> failures;  ///< those of them of which another assembly may do better
  std::vector<std::string> left_out;  ///< of tables, for they would be too large
  std::vector<std::string> left_out_metrics;         ///< of the archive, for want of locations
  uint64_t marker_count = 0;                         ///< in the archive
  std::map<std::string, uint64_t> left_out_markers;  ///< by category, beyond what is kept of each
  const WaitSummary* waits = nullptr;                ///< null: not analysed
  std::span<const ledger::FunctionCount> functions;  ///< that samples hit, most first
  const MetricTotals* totals = nullptr;              ///< null: not known
  uint64_t disk_used_bytes = 0;                      ///< spool and archive
  double assembly_seconds = 0;
  uint32_t share_count = 1;       ///< processes that went through the events
  uint32_t replaced_count = 0;    ///< of these, in the stead of a node that was silent
  bool is_snapshot = false;       ///< of a job that still runs
  size_t missing_node_count = 0;  ///< nodes whose spool is not there
  /// Whose agents ended before their spool was complete, and why it was not brought here, if known.
  std::map<std::string, std::string> lost_nodes;
  const StepSummary* steps = nullptr;  ///< null: not analysed
  std::vector<std::string> hangs;      ///< calls that had not returned when the job was over
};

/// Writes the ledger to `path` (0600).   Errors: kIo.
Status write_ledger(const std::filesystem::path& path, const LedgerFacts& facts);

/// Why a process is incomplete: its end was not seen, it was killed, or, as a rank, it did not come
/// to MPI_Finalize. Empty: it is complete.
std::string why_incomplete(const Group& group);

}  // namespace aon::writers
