// What the steps tell: a rank that computes longer than the others in each of them, and steps that
// become slower.

#include <fmt/format.h>

#include <algorithm>

#include "writers/ledger/findings.h"
#include "writers/steps/costly_steps.h"

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
constexpr double kLeastTold = 0.4;        ///< of what a rank cost, that its steps show
constexpr uint32_t kMaxLoops = 4;         ///< in which a rank's steps are looked at

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

/// Of the loops of most time, the one in which most of `lost_ns` is in few steps. Numbers of steps
/// that were detected mean nothing in the program.
template <class CostsOf>
std::string steps_text(const StepSummary* steps, double lost_ns, CostsOf costs_of) {
  if (steps == nullptr || !steps->is_annotated) return {};
  std::optional<CostlySteps> most;
  uint32_t most_loop = 0;
  const auto loop_count = std::min(kMaxLoops, static_cast<uint32_t>(steps->loops.size()));
  for (uint32_t loop = 0; loop < loop_count; ++loop) {
    const std::optional<CostlySteps> found =
        find_costly_steps(costs_of(*steps, loop), steps->step_count > steps->rows.size());
    if (!found || found->cost_ns < kLeastTold * lost_ns) continue;
    if (most && most->cost_ns >= found->cost_ns) continue;
    most = found;
    most_loop = loop;
  }
  return most ? "; most of that " + costly_text(*most, *steps, most_loop) : std::string();
}

}  // namespace

std::string Findings::computing_steps_text(size_t rank, double lost_ns) const {
  const auto group = std::find_if(model_->groups.begin(), model_->groups.end(),
                                  [&](const Group& one) { return one.rank == rank; });
  const auto others = static_cast<double>(std::max<size_t>(ranks_.size(), 2) - 1);
  return steps_text(steps_ != nullptr ? steps_->summary() : nullptr, lost_ns / others,
                    [&](const StepSummary& steps, uint32_t loop) {
                      return computed_longer(steps, loop, group->id);
                    });
}

/// Steps are a process's: where it has several GPUs nobody knows which one it was.
std::string Findings::nccl_steps_text(const nccl::LatenessSummary& late, uint32_t member,
                                      double lost_ns) const {
  const uint32_t group = late.members[member].group;
  const auto is_of_group = [&](const nccl::LateMember& one) { return one.group == group; };
  if (std::count_if(late.members.begin(), late.members.end(), is_of_group) != 1) return {};
  return steps_text(steps_ != nullptr ? steps_->summary() : nullptr, lost_ns,
                    [&](const StepSummary& steps, uint32_t loop) {
                      return told_costs(steps, late.step_caused_ns, loop, group);
                    });
}

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
                            "wait {}for it{}{}",
                            name_of(rank), how_long, loop.count, cost, sure,
                            computing_steps_text(rank, lost_ns))}};
}

}  // namespace aon::writers
