#include "writers/ledger/ledger_steps.h"

namespace aon::writers::ledger {
namespace {

using Json = nlohmann::ordered_json;

double seconds(uint64_t time_ns) { return static_cast<double>(time_ns) * 1e-9; }

Json loop_json(const StepLoop& loop, const Model& model) {
  const Group& slowest = model.groups[loop.slowest];
  const double ratio = loop.compute_ns == 0 ? 1
                                            : static_cast<double>(loop.slowest_ns) /
                                                  static_cast<double>(loop.compute_ns);
  return {{"name", loop.name},
          {"count", loop.count},
          {"ranks", loop.rank_count},
          {"matched", loop.matched},
          {"agreement", loop.agreement},
          {"median_s", seconds(loop.median_ns)},
          {"p95_s", seconds(loop.p95_ns)},
          {"compute_s", seconds(loop.compute_ns)},
          {"slowest_rank", slowest.rank ? Json(*slowest.rank) : Json()},
          {"slowest_compute_s", seconds(loop.slowest_ns)},
          {"slowest_ratio", ratio},
          {"trend", loop.trend}};
}

}  // namespace

/// The loop of most time speaks for the program; all of them follow.
Json steps_json(const LedgerFacts& facts) {
  if (facts.steps == nullptr) return nullptr;
  const StepSummary& steps = *facts.steps;
  Json result;
  if (steps.loops.empty()) {
    result["source"] = "none found";
  } else {
    result["source"] = steps.is_annotated ? "annotated" : "detected";
  }
  result["confidence"] = steps.confidence;
  result["coverage"] = steps.coverage;
  if (!steps.loops.empty()) result.update(loop_json(steps.loops.front(), *facts.model));
  result["steps_of_all_ranks"] = steps.step_count;
  result["rows_kept"] = steps.rows.size();
  result["loops"] = Json::array();
  for (const StepLoop& loop : steps.loops) result["loops"].push_back(loop_json(loop, *facts.model));
  return result;
}

}  // namespace aon::writers::ledger
