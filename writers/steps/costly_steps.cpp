#include "writers/steps/costly_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace aon::writers {
namespace {

uint64_t compute_ns(const StepRow& row) {
  return row.part_ns[static_cast<size_t>(StepPart::kCompute)];
}

/// By number. Nothing when one is missing or comes twice.
std::vector<StepCost> in_order(std::vector<StepCost> costs) {
  std::sort(costs.begin(), costs.end(),
            [](const StepCost& a, const StepCost& b) { return a.number < b.number; });
  const auto twice =
      std::adjacent_find(costs.begin(), costs.end(),
                         [](const StepCost& a, const StepCost& b) { return a.number == b.number; });
  if (twice != costs.end() || (!costs.empty() && costs.front().number < 0)) return {};
  return costs;
}

/// How many steps each of `steps` stands for.
std::vector<double> weights_of(std::span<const StepCost> steps, bool is_part) {
  std::vector<double> weights(steps.size(), 1);
  if (!is_part) return weights;
  for (size_t i = 0; i + 1 < steps.size(); ++i)
    weights[i] = static_cast<double>(steps[i + 1].number - steps[i].number);
  if (steps.size() > 1) weights.back() = weights[steps.size() - 2];
  return weights;
}

}  // namespace

std::optional<CostlySteps> find_costly_steps(std::span<const StepCost> steps, bool is_part) {
  const std::vector<double> weights = weights_of(steps, is_part);
  double all_ns = 0;
  double all_steps = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    all_ns += static_cast<double>(steps[i].cost_ns) * weights[i];
    all_steps += weights[i];
  }
  if (all_ns == 0 || all_steps < kLeastSteps) return std::nullopt;
  double fewest = all_steps * kFewSteps;
  std::optional<CostlySteps> found;
  double run_ns = 0;
  double run_steps = 0;
  size_t begin = 0;
  for (size_t end = 0; end < steps.size(); ++end) {
    run_ns += static_cast<double>(steps[end].cost_ns) * weights[end];
    run_steps += weights[end];
    for (; begin <= end; ++begin) {
      const double first_ns = static_cast<double>(steps[begin].cost_ns) * weights[begin];
      if (run_ns - first_ns < kCostlyShare * all_ns) break;
      run_ns -= first_ns;
      run_steps -= weights[begin];
    }
    const bool is_enough = run_ns >= kCostlyShare * all_ns;
    if (!is_enough || run_steps > fewest || (found && run_steps == fewest)) continue;
    fewest = run_steps;
    found = {steps[begin].number, steps[end].number, run_ns};
  }
  return found;
}

std::vector<StepCost> computed_longer(const StepSummary& summary, uint32_t loop, uint32_t group) {
  std::vector<const StepRow*> rows;
  for (const StepRow& row : summary.rows) {
    if (row.loop == loop) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(), [](const StepRow* a, const StepRow* b) {
    return a->number != b->number ? a->number < b->number : compute_ns(*a) < compute_ns(*b);
  });
  std::vector<StepCost> costs;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && rows[end]->number == rows[begin]->number) ++end;
    const uint64_t median_ns = compute_ns(*rows[begin + (end - begin - 1) / 2]);
    for (size_t i = begin; i < end; ++i) {
      const uint64_t own_ns = compute_ns(*rows[i]);
      if (rows[i]->group == group)
        costs.push_back({rows[i]->number, own_ns - std::min(own_ns, median_ns)});
    }
  }
  return in_order(std::move(costs));
}

std::vector<StepCost> told_costs(const StepSummary& summary, std::span<const uint64_t> told,
                                 uint32_t loop, uint32_t group) {
  std::vector<StepCost> costs;
  for (size_t i = 0; i < std::min(summary.rows.size(), told.size()); ++i) {
    const StepRow& row = summary.rows[i];
    if (row.loop == loop && row.group == group) costs.push_back({row.number, told[i]});
  }
  return in_order(std::move(costs));
}

std::string costly_text(const CostlySteps& steps, const StepSummary& summary, uint32_t loop) {
  std::string text = steps.first == steps.last
                         ? fmt::format("in step {}", steps.first)
                         : fmt::format("in steps {} to {}", steps.first, steps.last);
  if (summary.loops.size() > 1) text += fmt::format(" of {}", summary.loops[loop].name);
  return text;
}

}  // namespace aon::writers
