// What the steps tell: a rank that computes longer than the others in each of them, and steps that
// become slower.

#include <fmt/format.h>

#include <algorithm>

#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

constexpr double kSlowStepRatio = 1.25;    ///< computing of the slowest rank / median of the ranks
constexpr double kLeastStepShare = 0.05;   ///< of a step that the difference must be
constexpr double kLeastLostShare = 0.01;   ///< of all ranks' time that the others lose by it
constexpr double kLeastPolledShare = 0.5;  ///< of what it computes longer: it may wait in polls
constexpr double kLargestRatio = 20;       ///< beyond, a time says more
constexpr double kSlowerRatio = 1.2;       ///< last tenth / first tenth
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

std::optional<Findings::Blame> Findings::add_steps(const WaitTimes& waits,
                                                   std::vector<Finding>* findings) const {
  const StepSummary* steps = steps_ != nullptr ? steps_->summary() : nullptr;
  if (steps == nullptr || steps->loops.empty()) return std::nullopt;
  if (!steps->is_annotated && steps->confidence < kLeastConfidence) return std::nullopt;
  const StepLoop* told = first_sure_loop(*steps);
  if (told == nullptr) return std::nullopt;
  const StepLoop& loop = *told;
  const std::string sure = confidence_text(*steps, loop);
  const auto count = static_cast<double>(loop.count);
  const auto all_ns = static_cast<double>(total_ns());
  // Of the usual step, which the trend is of: a few long ones may be most of the time.
  const double slower_ns =
      static_cast<double>(loop.median_ns) * count * loop.rank_count * (loop.trend - 1) / 2;
  if (loop.count >= kLeastTrendSteps && loop.trend >= kSlowerRatio &&
      slower_ns >= kLeastLostShare * all_ns) {
    findings->push_back({slower_ns * 1e-9,
                         fmt::format("steps get slower: the last tenth takes {:.1f} times as long "
                                     "as the first ({} steps){}",
                                     loop.trend, loop.count, sure)});
  }
  const auto slowest_ns = static_cast<double>(loop.slowest_ns);
  const auto compute_ns = static_cast<double>(loop.compute_ns);
  const double more_ns = slowest_ns - compute_ns;
  const double lost_ns = more_ns * count * (loop.rank_count - 1);
  // Where communication is not seen it counts as computing, and the late rank would look the best.
  const bool is_slow = sees_communication() && loop.rank_count > 1 && compute_ns > 0 &&
                       slowest_ns >= kSlowStepRatio * compute_ns &&
                       more_ns >= kLeastStepShare * static_cast<double>(loop.median_ns) &&
                       lost_ns >= kLeastLostShare * all_ns;
  const Group& slowest = model_->groups[loop.slowest];
  if (!is_slow || !slowest.rank) return std::nullopt;
  const size_t rank = *slowest.rank;
  // A rank that polls may wait, and what nobody waits for does not matter.
  if (static_cast<double>(waits.polled_ns[rank]) > kLeastPolledShare * more_ns * count)
    return std::nullopt;
  const auto waited_ns = static_cast<double>(waits.of_others_ns({&rank, 1}));
  if (waits.is_whole && waited_ns < kLeastWaitedShare * lost_ns) return std::nullopt;
  const std::string how_long =
      slowest_ns < kLargestRatio * compute_ns
          ? fmt::format("{:.1f} times as long as the median", slowest_ns / compute_ns)
          : fmt::format("{} longer than the median", seconds_text(more_ns * 1e-9));
  const std::string cost =
      waits.is_whole ? waits.of_others_text({&rank, 1}, lost_ns) + " in all " : "";
  return Blame{rank,
               {weight_of_cause_s(waits, lost_ns),
                fmt::format("rank {} computes {} in each step (median of {} steps): the others "
                            "wait {}for it{}",
                            name_of(rank), how_long, loop.count, cost, sure)}};
}

}  // namespace aon::writers
