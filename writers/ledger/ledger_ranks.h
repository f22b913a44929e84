/// The ledger's entries per process and per node. Internal to writers/ledger.
#pragma once

#include <nlohmann/json.hpp>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

/// One entry per group of the model: identity, exit, threads with their law, providers.
nlohmann::ordered_json ranks_json(const LedgerFacts& facts);

/// Calls that were counted but not all timed: {region: calls}, over all ranks.
nlohmann::ordered_json counted_json(const LedgerFacts& facts);

/// One entry per node: its providers, its processes, its own series.
nlohmann::ordered_json nodes_json(const LedgerFacts& facts);

}  // namespace aon::writers::ledger
