/// In which steps a slow rank cost most, where that is not in all of them.
///
/// What a step cost is either told (NCCL's lateness) or how much longer the process computed in it
/// than the median of those that have it. Where only some steps were kept, each stands for those up
/// to the next one. Steps of which the program does not tell the number, or tells it twice, are not
/// named.
/// Thread: one.   Cost: a sort of the loop's rows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "writers/steps/steps.h"

namespace aon::writers {

constexpr double kCostlyShare = 0.9;  ///< of the cost is in the steps that are named
constexpr double kFewSteps = 0.75;    ///< of all steps, at most, are named
constexpr double kLeastSteps = 16;    ///< of fewer, chance makes some dearer than others

struct StepCost {
  int64_t number;
  uint64_t cost_ns;
};

struct CostlySteps {
  int64_t first = 0;
  int64_t last = 0;
  double cost_ns = 0;  ///< in these
};

/// The fewest steps in a row that have kCostlyShare of the cost; nothing where that is more than
/// kFewSteps of them, or there are fewer than kLeastSteps. `steps` by number, each once. `is_part`:
/// others were not kept; else numbers that are missing are those of no step.
std::optional<CostlySteps> find_costly_steps(std::span<const StepCost> steps, bool is_part);

/// How much longer `group` computed in its steps of `loop` than the median of the processes (of two
/// the faster one); empty where numbers are not known.
std::vector<StepCost> computed_longer(const StepSummary& summary, uint32_t loop, uint32_t group);

/// What `told` (by row of `summary`) says of them.
std::vector<StepCost> told_costs(const StepSummary& summary, std::span<const uint64_t> told,
                                 uint32_t loop, uint32_t group);

/// "in steps 120 to 340", "in step 7"; of several loops with the name of this one.
std::string costly_text(const CostlySteps& steps, const StepSummary& summary, uint32_t loop);

}  // namespace aon::writers
