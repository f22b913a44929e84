// What is missing, for what reason, and which option would keep it.

#include <fmt/format.h>

#include <algorithm>

#include "core/base/digits.h"
#include "writers/ledger/findings.h"

namespace aon::writers {
namespace {

// Weights of what comes before all times, in seconds.
constexpr double kSampleLossWeight = 1e11;
constexpr double kDefinitionLossWeight = 5e11;
constexpr double kLossWeight = 1e12;  ///< losses stand first: they qualify all the rest

uint64_t lost_samples(std::span<const LocationTally> tallies) {
  uint64_t count = 0;
  for (const LocationTally& tally : tallies) {
    if (!is_thread_of_process(*tally.location)) count += tally.lost_count();
  }
  return count;
}

/// Two digits, one more where nearly all is; 100 only of all, and of next to nothing no exponent.
std::string percent_text(uint64_t part, uint64_t whole) {
  if (part >= whole) return "100 %";
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent >= 99.95) return "more than 99 %";
  if (percent < 0.01) return "less than 0.01 %";
  return percent < 99 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.1f} %", percent);
}

}  // namespace

void Findings::add_losses(std::span<const LocationTally> tallies,
                          std::vector<Finding>* findings) const {
  uint64_t emitted = 0;
  uint64_t in_agents_rings = 0;
  uint64_t by_reason[kLossReasonCount] = {};
  for (const LocationTally& tally : tallies) {
    if (!is_thread_of_process(*tally.location)) continue;  // the law and the totals are about these
    emitted += tally.emitted();
    for (uint32_t i = 0; i < kLossReasonCount; ++i) by_reason[i] += tally.lost[i].count;
    const spool::Process* process = model_->groups[tally.location->group].process;
    if (process == nullptr || process->start.fallback == 0)
      in_agents_rings += tally.lost[static_cast<uint32_t>(LossReason::kPoolFull)].count;
  }
  uint64_t lost = 0;
  uint32_t main_reason = 0;
  for (uint32_t i = 0; i < kLossReasonCount; ++i) {
    lost += by_reason[i];
    if (by_reason[i] > by_reason[main_reason]) main_reason = i;
  }
  if (const uint64_t samples = lost_samples(tallies); samples != 0)
    findings->push_back(
        {kSampleLossWeight,
         fmt::format("{} samples of counters or call paths are lost", grouped(samples))});
  if (lost == 0) return;
  const auto reason = static_cast<LossReason>(main_reason);
  std::string text =
      fmt::format("{} of {} records are lost ({}), most of them: {}", grouped(lost),
                  grouped(emitted), percent_text(lost, emitted), loss_reason_name(reason));
  if (reason == LossReason::kPoolFull) text += pool_full_text(in_agents_rings == 0);
  if (reason == LossReason::kEvictedByCap)
    text += "; a larger --disk, or a disk with more room, would keep them";
  findings->push_back({kLossWeight, text});
}

/// What would keep them. The runtime says, as of providers, what is no matter of memory.
/// `is_without_agent`: in rings of processes that found none, whose size comes from --disk.
std::string Findings::pool_full_text(bool is_without_agent) const {
  const char* option = is_without_agent ? "a larger --disk, or an agent in time (--attach-ms),"
                                        : "a larger --memory";
  std::string others;
  const auto add = [&](const char* provider, const char* whose) {
    const bool is_told =
        std::any_of(model_->groups.begin(), model_->groups.end(), [&](const Group& group) {
          return group.process != nullptr && group.process->providers.count(provider) != 0;
        });
    if (is_told)
      others += fmt::format("{}{} (see {})", others.empty() ? "" : " and ", whose, provider);
  };
  add("threads", "more threads at a time than a process may have record");
  add("children", "children in their parent's memory");
  if (others.empty())
    return fmt::format("; {} would keep them{}", option,
                       is_without_agent ? "" : ", unless the agent was late");
  return fmt::format("; those of {} no option would keep, the others {}", others, option);
}

void Findings::add_lost_definitions(std::vector<Finding>* findings) const {
  uint64_t by_pool = 0;
  uint64_t by_disk = 0;
  for (const spool::Node& node : model_->job->nodes) {
    by_disk += node.refused_definitions.sum();
    for (const auto& [number, process] : node.processes) {
      by_pool += process.refused_definitions.by_pool;
      by_disk += process.refused_definitions.by_disk;
    }
  }
  if (by_pool + by_disk == 0) return;
  findings->push_back(
      {kDefinitionLossWeight,
       fmt::format("{} definitions are lost (names of functions, communicators, files): a larger "
                   "{} would keep them",
                   grouped(by_pool + by_disk), by_pool > by_disk ? "--memory" : "--disk")});
}

}  // namespace aon::writers
