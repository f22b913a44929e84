/// What aon.json tells of NCCL's level: the changes that the budget made.
/// Thread: one.
#pragma once

#include <nlohmann/json.hpp>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

/// A list of {process, rank, time, from, to}, the first kMaxLevelChanges of the job.
constexpr size_t kMaxLevelChanges = 256;
nlohmann::ordered_json nccl_level_changes_json(const LedgerFacts& facts);

/// How far the budget lowered the level of a process, "" where it did not.
std::string lowered_level(const spool::Process& process);

}  // namespace aon::writers::ledger
