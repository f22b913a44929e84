/// The part "steps" of aon.json: the program's iterations, how they were found, and how sure that
/// is. docs/steps.md names the keys.
/// Thread: one.
#pragma once

#include <nlohmann/json.hpp>

#include "writers/ledger/ledger.h"

namespace aon::writers::ledger {

/// Null when the steps were not analysed.
nlohmann::ordered_json steps_json(const LedgerFacts& facts);

}  // namespace aon::writers::ledger
