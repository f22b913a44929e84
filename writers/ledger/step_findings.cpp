// What the steps tell: a rank that computes longer than the others in each of them, and steps that
// become slower.

#include <fmt/format.h>

#include <algorithm>

#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kSlowStepRatio = 1.25;   ///< computing of the slowest rank / median of the ranks
constexpr double kLeastStepShare = 0.05;  ///< of a step that the difference must be
constexpr double kLeastLostShare = 0.01;  ///< of all ranks' time that the others lose by it
constexpr double kSlowerRatio = 1.2;      ///< last tenth / first tenth
constexpr uint64_t kLeastTrendSteps = 50;
constexpr double kLeastConfidence = 0.5;  ///< below, what is detected is in the tables only

std::string confidence_text(const StepSummary& steps, const StepLoop& loop) {
  return steps.is_annotated ? std::string()
                            : fmt::format(" (steps detected at {}, confidence {:.2f})", loop.name,
                                          steps.confidence);
}

/// The loop of most time that is sure by itself; null: none is.
const StepLoop* first_sure_loop(const StepSummary& steps) {
  const auto is_sure = [&](const StepLoop& loop) {
    return steps.is_annotated || loop.matched * loop.agreement >= kLeastConfidence;
  };
  const auto found = std::find_if(steps.loops.begin(), steps.loops.end(), is_sure);
  return found != steps.loops.end() ? &*found : nullptr;
}

}  // namespace

bool Findings::add_steps(std::vector<Finding>* findings) const {
  const StepSummary* steps = steps_ != nullptr ? steps_->summary() : nullptr;
  if (steps == nullptr || steps->loops.empty()) return false;
  if (!steps->is_annotated && steps->confidence < kLeastConfidence) return false;
  const StepLoop* told = first_sure_loop(*steps);
  if (told == nullptr) return false;
  const StepLoop& loop = *told;
  const std::string sure = confidence_text(*steps, loop);
  const auto count = static_cast<double>(loop.count);
  const auto slowest_ns = static_cast<double>(loop.slowest_ns);
  const auto compute_ns = static_cast<double>(loop.compute_ns);
  const double more_ns = slowest_ns - compute_ns;
  const double lost_ns = more_ns * count * (loop.rank_count - 1);
  const auto all_ns = static_cast<double>(total_ns());
  // Where communication is not seen it counts as computing, and the late rank would look the best.
  const bool is_slow = sees_communication() && loop.rank_count > 1 && compute_ns > 0 &&
                       slowest_ns >= kSlowStepRatio * compute_ns &&
                       more_ns >= kLeastStepShare * static_cast<double>(loop.median_ns) &&
                       lost_ns >= kLeastLostShare * all_ns;
  const Group& slowest = model_->groups[loop.slowest];
  if (is_slow && slowest.rank) {
    findings->push_back(
        // It explains the others, so it comes before them.
        {std::max(lost_ns, all_ns) * 1e-9,
         fmt::format("rank {} computes {:.1f} times as long as the median in each step (median of "
                     "{} steps): the others wait for it{}",
                     *slowest.rank, slowest_ns / compute_ns, loop.count, sure)});
  }
  if (loop.count >= kLeastTrendSteps && loop.trend >= kSlowerRatio) {
    findings->push_back({loop.sum_ns * 1e-9 * (loop.trend - 1) / 2,
                         fmt::format("steps get slower: the last tenth takes {:.1f} times as long "
                                     "as the first ({} steps){}",
                                     loop.trend, loop.count, sure)});
  }
  return is_slow && slowest.rank.has_value();
}

}  // namespace aon::writers
