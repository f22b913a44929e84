#include "core/agent/budget.h"

#include <aon/nccl.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace aon::agent {
namespace {

bool is_sampling(uint32_t mode) { return mode >= kModeSample && mode < kModeOff; }

const SiteLoad* find_site(std::span<const SiteLoad> sites, const ModeChange& change) {
  const auto it = std::find_if(sites.begin(), sites.end(), [&](const SiteLoad& site) {
    return site.process == change.process && site.site == change.site;
  });
  return it == sites.end() ? nullptr : &*it;
}

/// Sites of one kind share what it costs, of all processes.
uint32_t kind_of(const SiteLoad& site) {
  if (site.site >= kFirstProviderSite) return site.site;
  return site.site == kNcclProxySite || site.site == kNcclFixedSite ? 1 : 0;
}

/// ns a second of each kind that can be lowered.
std::map<uint32_t, double> kind_costs(std::span<const SiteLoad> sites) {
  std::map<uint32_t, double> costs;
  for (const SiteLoad& site : sites) {
    if (is_sampling(site.mode)) costs[kind_of(site)] += site.cost_per_second;
  }
  return costs;
}

double sum_of(const std::map<uint32_t, double>& costs) {
  double sum = 0;
  for (const auto& [kind, cost] : costs) sum += cost;
  return sum;
}

/// The part of a site's cost that goes with a change.
double saved_part(const ModeChange& change) {
  if (!is_sampling(change.new_mode)) return 1;
  return 1 - static_cast<double>(change.old_mode - kModeSample + 1) /
                 static_cast<double>(change.new_mode - kModeSample + 1);
}

}  // namespace

uint32_t thinner_mode(uint32_t mode, uint32_t last_period) noexcept {
  const uint32_t period = mode - kModeSample + 1;
  return period >= last_period ? static_cast<uint32_t>(kModeCount) : kModeSample + 2 * period - 1;
}

std::vector<ModeChange> Budget::step(const IntervalCost& cost, std::span<const SiteLoad> sites) {
  if (cost.seconds <= 0 || cost.ranks_ns <= 0) return {};
  const double now_ns = cost.application_ns + cost.agent_ns;
  const double weight = 1 - std::exp(-cost.seconds);  // time constant 1 s
  average_ += (now_ns / cost.ranks_ns * 100 - average_) * weight;
  const double allowed_ns = percent_ / 100 * cost.ranks_ns;
  debt_ns_ += std::min(now_ns - allowed_ns, sum_of(kind_costs(sites)) * cost.seconds);
  const bool has_debt = debt_ns_ > 0;
  if (average_ > (has_debt ? kPayBackFactor : kDegradeFactor) * percent_) {
    auto changes = degrade(cost, sites, average_ - (has_debt ? kPayBackFactor : 1) * percent_);
    if (!changes.empty()) {
      quiet_seconds_ = 0;
      return changes;
    }
  }
  quiet_seconds_ = has_room() && !has_debt ? quiet_seconds_ + cost.seconds : 0;
  if (quiet_seconds_ < wait_seconds_) return {};
  quiet_seconds_ = 0;
  return recover(sites);
}

/// Whether the last change may be taken back.
bool Budget::has_room() const {
  if (average_ < kRecoverFactor * percent_) return true;
  return !changes_.empty() && average_ + changes_.back().saved_percent < kRoomFactor * percent_;
}

/// `excess`: percent that are too much.
std::vector<ModeChange> Budget::degrade(const IntervalCost& cost, std::span<const SiteLoad> sites,
                                        double excess) {
  const double percent_of_ns = cost.seconds / cost.ranks_ns * 100;  // of ns a second
  std::map<uint32_t, double> kinds = kind_costs(sites);
  const double all = sum_of(kinds) * percent_of_ns;
  if (all < kRelevantExcessPart * excess && all <= percent_) return {};
  const SiteLoad* dearest = nullptr;
  for (const SiteLoad& site : sites) {
    if (!is_sampling(site.mode) || site.cost_per_second <= 0) continue;
    if (kinds[kind_of(site)] * percent_of_ns < kRelevantBudgetPart * percent_) continue;
    if (dearest == nullptr || site.cost_per_second > dearest->cost_per_second) dearest = &site;
  }
  if (dearest == nullptr) return {};
  if (has_recovered_) wait_seconds_ = std::min<double>(2 * wait_seconds_, kMaxWaitSeconds);
  has_recovered_ = false;
  const ModeChange change{dearest->process, dearest->site, dearest->mode,
                          thinner_mode(dearest->mode, dearest->last_period)};
  changes_.push_back({change, saved_part(change) * dearest->cost_per_second * percent_of_ns});
  return {change};
}

std::vector<ModeChange> Budget::recover(std::span<const SiteLoad> sites) {
  while (!changes_.empty()) {
    const ModeChange last = changes_.back().change;
    changes_.pop_back();
    const SiteLoad* site = find_site(sites, last);
    if (site == nullptr || site->mode != last.new_mode) continue;  // somebody else changed it
    has_recovered_ = true;
    return {{last.process, last.site, last.new_mode, last.old_mode}};
  }
  return {};
}

void Budget::forget(uint32_t process) {
  std::erase_if(changes_, [&](const Step& step) { return step.change.process == process; });
}

void Budget::forget(uint32_t process, uint32_t site) {
  std::erase_if(changes_, [&](const Step& step) {
    return step.change.process == process && step.change.site == site;
  });
}

}  // namespace aon::agent
