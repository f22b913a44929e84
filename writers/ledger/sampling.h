/// The samples of a job in the ledger: how it was sampled, where most of them hit, what has no name
/// and why.   Thread: one.   Cost: proportional to functions and modules that were hit.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "writers/ledger/tally.h"
#include "writers/profile/call_samples.h"
#include "writers/writer.h"

namespace aon::writers::ledger {

struct FunctionCount {
  uint32_t function;  ///< in Model::functions
  uint64_t self;      ///< samples that hit it
  uint64_t period;    ///< of these, in units of the event
};
/// Functions by the time that samples of them stand for, most first.
std::vector<FunctionCount> hot_functions(const Model& model,
                                         std::span<const profile::CallPathCount> counts);

/// Null when nothing was sampled.
nlohmann::ordered_json sampling_json(const Model& model, std::span<const LocationTally> tallies,
                                     std::span<const FunctionCount> functions);

}  // namespace aon::writers::ledger
