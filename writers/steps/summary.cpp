#include "writers/steps/summary.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "writers/steps/statistics.h"

namespace aon::writers::steps {
namespace {

using Rows = std::vector<const StepStatistics*>;

template <class Value>
uint64_t median_of(const Rows& rows, Value value) {
  std::vector<uint64_t> values;
  for (const StepStatistics* row : rows) values.push_back(value(*row));
  return quantile(std::move(values), 0.5);
}

const StepFigures& part(const StepStatistics& row, StepPart which) {
  return row.parts[static_cast<size_t>(which)];
}

/// The step count that most ranks have; of two the larger one.
uint64_t usual_count(const Rows& rows, uint64_t* rank_count) {
  std::map<uint64_t, uint64_t> counts;
  for (const StepStatistics* row : rows) ++counts[row->count];
  uint64_t usual = 0;
  *rank_count = 0;
  for (const auto& [count, ranks] : counts) {
    if (ranks < *rank_count) continue;
    usual = count;
    *rank_count = ranks;
  }
  return usual;
}

void describe(const Rows& rows, size_t process_count, StepLoop* loop) {
  uint64_t agreeing = 0;
  loop->count = usual_count(rows, &agreeing);
  loop->rank_count = static_cast<uint32_t>(rows.size());
  loop->agreement =
      static_cast<double>(agreeing) / static_cast<double>(std::max(process_count, rows.size()));
  uint64_t count = 0;
  uint64_t matched = 0;
  std::vector<double> trends;
  for (const StepStatistics* row : rows) {
    count += row->count;
    matched += row->matched_count;
    loop->sum_ns += static_cast<double>(row->sum_ns);
    const uint64_t compute_ns = part(*row, StepPart::kCompute).median_ns;
    if (row == rows.front() || compute_ns > loop->slowest_ns) {
      loop->slowest = row->group;
      loop->slowest_ns = compute_ns;
    }
    if (row->first_ns != 0)
      trends.push_back(static_cast<double>(row->last_ns) / static_cast<double>(row->first_ns));
  }
  loop->matched = static_cast<double>(matched) / static_cast<double>(std::max<uint64_t>(count, 1));
  loop->median_ns = median_of(
      rows, [](const StepStatistics& row) { return part(row, StepPart::kDuration).median_ns; });
  loop->p95_ns = median_of(
      rows, [](const StepStatistics& row) { return part(row, StepPart::kDuration).p95_ns; });
  std::vector<uint64_t> computes_ns;
  for (const StepStatistics* row : rows) {
    computes_ns.push_back(part(*row, StepPart::kCompute).median_ns);
  }
  std::sort(computes_ns.begin(), computes_ns.end());
  loop->compute_ns = computes_ns[(computes_ns.size() - 1) / 2];
  if (trends.empty()) return;
  std::sort(trends.begin(), trends.end());
  loop->trend = trends[trends.size() / 2];
}

/// Puts the loops in order of their time, and drops those without any.
void order_loops(StepSummary* summary) {
  std::vector<uint32_t> order(summary->loops.size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](uint32_t i) { return summary->loops[i].rank_count == 0; });
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return summary->loops[a].sum_ns > summary->loops[b].sum_ns;
  });
  std::vector<uint32_t> numbers(summary->loops.size());
  std::vector<StepLoop> loops;
  for (const uint32_t i : order) {
    numbers[i] = static_cast<uint32_t>(loops.size());
    loops.push_back(std::move(summary->loops[i]));
  }
  summary->loops = std::move(loops);
  for (StepStatistics& row : summary->statistics) row.loop = numbers[row.loop];
  for (StepRow& row : summary->rows) row.loop = numbers[row.loop];
  summary->final_loops = std::move(numbers);
}

}  // namespace

void sum_up(const StepPlan& plan, const Model& model, double run_ns, StepSummary* summary) {
  std::vector<Rows> by_loop(summary->loops.size());
  for (const StepStatistics& row : summary->statistics) by_loop[row.loop].push_back(&row);
  const auto process_count =
      static_cast<size_t>(std::count_if(model.groups.begin(), model.groups.end(),
                                        [](const Group& group) { return group.rank.has_value(); }));
  double sum_ns = 0;
  double sure_ns = 0;
  for (size_t i = 0; i < by_loop.size(); ++i) {
    StepLoop& loop = summary->loops[i];
    if (by_loop[i].empty()) continue;
    describe(by_loop[i], process_count, &loop);
    sum_ns += loop.sum_ns;
    sure_ns += loop.sum_ns * loop.matched * loop.agreement;
  }
  order_loops(summary);
  summary->coverage = run_ns == 0 ? 0 : std::min(1.0, sum_ns / run_ns);
  const bool has_steps = !summary->loops.empty();
  if (plan.is_annotated) {
    summary->confidence = has_steps ? 1 : 0;
  } else {
    summary->confidence = sum_ns == 0 ? 0 : summary->coverage * sure_ns / sum_ns;
  }
}

}  // namespace aon::writers::steps
