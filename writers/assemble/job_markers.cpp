#include "writers/assemble/job_markers.h"

#include <aon/nccl_level.h>
#include <aon/ring.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "core/spool/agent_gap.h"
#include "core/spool/nccl_levels.h"
#include "writers/ledger/ledger.h"
#include "writers/ledger/ledger_ranks.h"

namespace aon::writers {
namespace {

using otf2::Marker;
using otf2::MarkerKind;

/// 0: it is no period.
uint32_t period_of(uint32_t mode) {
  return mode < kModeSample || mode >= kModeOff ? 0 : mode - kModeSample + 1;
}

/// What is done with the calls of a site.
std::string call_mode_text(uint32_t mode) {
  if (mode == kModeCount) return "counted only";
  if (const uint32_t period = period_of(mode); period > 1)
    return fmt::format("one in {} timed", period);
  return mode < kModeOff ? "each recorded" : "not recorded";
}

/// How much a provider samples or counts.
std::string rate_text(uint32_t mode) {
  if (mode == kModeCount) return "the least";
  const uint32_t period = period_of(mode);
  return period > 1 ? fmt::format("1/{}", period) : "all";
}

class JobMarkerList {
 public:
  JobMarkerList(const JobModel& parts, size_t most, bool is_snapshot)
      : parts_(parts), model_(parts.model), is_snapshot_(is_snapshot), markers_(most) {}

  otf2::Markers run() {
    const std::set<ledger::Identity> with_file = ledger::with_file_of_their_own(model_);
    for (const Group& group : model_.groups) {
      if (group.process == nullptr) continue;
      // What a late agent saw of the end is told of the process that wrote a file.
      const bool is_own = group.rank || group.process->start.fallback != 0 ||
                          with_file.count(ledger::identity_of(model_, group)) == 0;
      if (is_own) add_end(group);
      for (const BudgetDefinition& change : group.process->budget_changes)
        add_change(group, change);
      add_rates(group);
    }
    for (size_t n = 0; n < parts_.job.nodes.size(); ++n) add_node(n);
    return std::move(markers_);
  }

 private:
  /// `text()` is asked for only where there is room.
  template <class Text>
  void add(MarkerKind kind, const Group& group, uint64_t time_ns, Text text) {
    if (time_ns < model_.archive_start_ns) return;
    if (!markers_.takes(kind, 0)) return markers_.leave_out(kind);
    markers_.add(
        {kind, Marker::Scope::kProcess, group.id, time_ns, 0, 0, group.name + ": " + text()});
  }
  void add_to_node(MarkerKind kind, size_t node, uint64_t start_ns, uint64_t end_ns,
                   const std::string& text) {
    if (end_ns < model_.archive_start_ns) return;
    markers_.add({kind, Marker::Scope::kNode, node, start_ns, std::max(start_ns, end_ns) - start_ns,
                  0, parts_.job.nodes[node].host + ": " + text});
  }
  uint64_t time_ns(size_t node, uint64_t ticks) const { return parts_.clocks[node].to_ns(ticks); }

  void add_end(const Group& group) {
    const std::string why = why_incomplete(group);
    const spool::Process& process = *group.process;
    if (why.empty() || (is_snapshot_ && !process.exit)) return;
    const bool is_known = process.exit && process.exit->end_ticks != 0;
    const uint64_t end_ns = is_known ? time_ns(group.node, process.exit->end_ticks) : model_.end_ns;
    add(MarkerKind::kProcessEnd, group, end_ns, [&] {
      const std::string& host = parts_.job.nodes[group.node].host;
      return fmt::format("{} (pid {} on {})", why, process.start.pid, host);
    });
  }

  void add_change(const Group& group, const BudgetDefinition& change) {
    const uint64_t when_ns = time_ns(group.node, change.ticks);
    if (spool::is_nccl_answer(change))
      return add_nccl_level(group, when_ns, NcclAnswer::of(change.old_mode));
    if (spool::is_nccl_level_change(change)) {
      add(MarkerKind::kNcclLevel, group, when_ns, [&] {
        return fmt::format("level {}, before {}, by the budget",
                           nccl_level_name(spool::nccl_level_in(change, change.new_mode)),
                           nccl_level_name(spool::nccl_level_in(change, change.old_mode)));
      });
      return;
    }
    add(MarkerKind::kCallBudget, group, when_ns, [&] {
      const auto region = group.process->regions.find(change.site);
      const bool is_known = region != group.process->regions.end();
      return fmt::format("{} {}, before {}", is_known ? region->second.name : "[unknown region]",
                         call_mode_text(change.new_mode), call_mode_text(change.old_mode));
    });
  }

  void add_nccl_level(const Group& group, uint64_t when_ns, const NcclAnswer& answer) {
    if (answer.asked == NcclLevel::kOff || answer.level == answer.before) return;
    add(MarkerKind::kNcclLevel, group, when_ns, [&] {
      return fmt::format("level {}, before {}, as asked for", nccl_level_name(answer.level),
                         nccl_level_name(answer.before));
    });
  }

  /// The first one is what was asked for.
  void add_rates(const Group& group) {
    const std::vector<SamplingDefinition>& all = group.process->sampling;
    for (size_t i = 1; i < all.size(); ++i) {
      if (all[i].rate_hz == all[i - 1].rate_hz) continue;
      add(MarkerKind::kNodeBudget, group, time_ns(group.node, all[i].ticks), [&] {
        return fmt::format("{} samples a second of a thread, before {}", all[i].rate_hz,
                           all[i - 1].rate_hz);
      });
    }
  }

  void add_node(size_t node) {
    for (const BudgetDefinition& change : parts_.job.nodes[node].budget_changes) {
      const uint64_t when_ns = time_ns(node, change.ticks);
      add_to_node(MarkerKind::kNodeBudget, node, when_ns, when_ns,
                  fmt::format("a provider samples or counts {}, before {}",
                              rate_text(change.new_mode), rate_text(change.old_mode)));
    }
    for (const LossDefinition& gap : parts_.job.nodes[node].series.losses) {
      if (!spool::is_agent_gap(gap)) continue;
      const uint64_t start_ns = time_ns(node, gap.start_ticks);
      const uint64_t end_ns = time_ns(node, gap.end_ticks);
      const double gap_s = static_cast<double>(end_ns) - static_cast<double>(start_ns);
      add_to_node(MarkerKind::kAgentRestart, node, start_ns, end_ns,
                  fmt::format("the agent's worker was killed; worker {} went on {:.3f} s later",
                              spool::worker_behind(gap), gap_s * 1e-9));
    }
    if (clock_hosts_.insert(parts_.job.nodes[node].host).second) add_clock_steps(node);
  }

  /// As ClockMap finds them. The spools of a host share its clock.
  void add_clock_steps(size_t node) {
    const std::vector<ClockDefinition>& all = parts_.job.nodes[node].clock;
    for (size_t i = 1; i < all.size() && parts_.clocks[node].step_count() != 0; ++i) {
      const ClockDefinition& a = all[i - 1];
      const ClockDefinition& b = all[i];
      const auto raw_ns = static_cast<int64_t>(b.monotonic_raw_ns - a.monotonic_raw_ns);
      const int64_t step_ns = static_cast<int64_t>(b.realtime_ns - a.realtime_ns) - raw_ns;
      if (std::abs(step_ns) <= clock::kStepNs + raw_ns / 1000) continue;
      add_to_node(MarkerKind::kClockStep, node, time_ns(node, a.ticks), time_ns(node, b.ticks),
                  fmt::format("REALTIME was set by {:+.3f} s, or the node was suspended",
                              static_cast<double>(step_ns) * 1e-9));
    }
  }

  const JobModel& parts_;
  const Model& model_;
  bool is_snapshot_;
  otf2::Markers markers_;
  std::set<std::string> clock_hosts_;
};

}  // namespace

otf2::Markers job_markers(const JobModel& parts, size_t most, bool is_snapshot) {
  return JobMarkerList(parts, most, is_snapshot).run();
}

}  // namespace aon::writers
