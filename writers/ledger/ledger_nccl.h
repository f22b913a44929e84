/// What aon.json tells of NCCL's level: the changes that the budget made, and what became of those
/// that the user asked for while the job ran.
/// Thread: one.
#pragma once

#include <nlohmann/json.hpp>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

/// A list of {process, rank, time, from, to}, the first kMaxLevelChanges of the job.
constexpr size_t kMaxLevelChanges = 256;
nlohmann::ordered_json nccl_level_changes_json(const LedgerFacts& facts);

/// A list of {asked, time, from, to, reason, ranks, processes}, one for all processes to which the
/// same happened: `ranks` as "0-3,7", `processes` their number, those without a rank among them,
/// `time` the first one's. In order of time, the first kMaxLevelChanges.
nlohmann::ordered_json nccl_levels_asked_json(const LedgerFacts& facts);

/// How many mode words the budget changed.
size_t count_mode_changes(const spool::Process& process);

/// How far the budget lowered the level of a process, "" where it did not.
std::string lowered_level(const spool::Process& process);

}  // namespace aon::writers::ledger
