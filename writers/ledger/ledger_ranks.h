/// The ledger's entries per process and per node. Internal to writers/ledger.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

/// Host, pid and start of a process. Programs that it was in turn by exec() have the same.
using Identity = std::tuple<std::string, int32_t, uint64_t>;
/// `group` has a process.
Identity identity_of(const Model& model, const Group& group);

/// The processes that found no agent in time.
std::set<Identity> with_file_of_their_own(const Model& model);

/// One entry per group of the model: identity, exit, threads with their law, providers.
nlohmann::ordered_json ranks_json(const LedgerFacts& facts);

/// Calls that were counted but not all timed: {region: calls}, over all ranks.
nlohmann::ordered_json counted_json(const LedgerFacts& facts);

/// One entry per node: its providers, its processes, its own series.
nlohmann::ordered_json nodes_json(const LedgerFacts& facts);

}  // namespace aon::writers::ledger
