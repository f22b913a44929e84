/// The ledger's `clock`: how far the nodes' times may be apart (docs/clocks.md has the keys).
/// Internal to writers/ledger.
#pragma once

#include <nlohmann/json.hpp>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

nlohmann::ordered_json clock_json(const LedgerFacts& facts);

}  // namespace aon::writers::ledger
