#include "core/agent/budget.h"

#include <algorithm>
#include <cmath>

namespace aon::agent {
namespace {

bool is_sampling(uint32_t mode) { return mode >= kModeSample && mode < kModeOff; }

const SiteLoad* find_site(std::span<const SiteLoad> sites, const ModeChange& change) {
  const auto it = std::find_if(sites.begin(), sites.end(), [&](const SiteLoad& site) {
    return site.process == change.process && site.site == change.site;
  });
  return it == sites.end() ? nullptr : &*it;
}

}  // namespace

uint32_t thinner_mode(uint32_t mode, uint32_t last_period) noexcept {
  const uint32_t period = mode - kModeSample + 1;
  return period >= last_period ? static_cast<uint32_t>(kModeCount) : kModeSample + 2 * period - 1;
}

std::vector<ModeChange> Budget::step(const IntervalCost& cost, std::span<const SiteLoad> sites) {
  spent_ns_ += cost.application_ns + cost.agent_ns;
  if (cost.seconds <= 0 || cost.ranks_ns <= 0) return {};
  ranks_ns_ += cost.ranks_ns;
  const double now = (cost.application_ns + cost.agent_ns) / cost.ranks_ns * 100;
  const double weight = 1 - std::exp(-cost.seconds);  // time constant 1 s
  average_ += (now - average_) * weight;
  const bool is_overspent = spent_ns_ / ranks_ns_ * 100 > percent_;
  if (average_ > (is_overspent ? kPayBackFactor : kDegradeFactor) * percent_) {
    quiet_seconds_ = 0;
    return degrade(sites);
  }
  const bool is_quiet = average_ < kRecoverFactor * percent_ && !is_overspent;
  quiet_seconds_ = is_quiet ? quiet_seconds_ + cost.seconds : 0;
  if (quiet_seconds_ < wait_seconds_) return {};
  quiet_seconds_ = 0;
  return recover(sites);
}

std::vector<ModeChange> Budget::degrade(std::span<const SiteLoad> sites) {
  const SiteLoad* dearest = nullptr;
  for (const SiteLoad& site : sites) {
    if (!is_sampling(site.mode) || site.cost_per_second <= 0) continue;
    if (dearest == nullptr || site.cost_per_second > dearest->cost_per_second) dearest = &site;
  }
  if (dearest == nullptr) return {};
  if (has_recovered_) wait_seconds_ = std::min<double>(2 * wait_seconds_, kMaxWaitSeconds);
  has_recovered_ = false;
  const ModeChange change{dearest->process, dearest->site, dearest->mode,
                          thinner_mode(dearest->mode, dearest->last_period)};
  changes_.push_back(change);
  return {change};
}

std::vector<ModeChange> Budget::recover(std::span<const SiteLoad> sites) {
  while (!changes_.empty()) {
    const ModeChange last = changes_.back();
    changes_.pop_back();
    const SiteLoad* site = find_site(sites, last);
    if (site == nullptr || site->mode != last.new_mode) continue;  // somebody else changed it
    has_recovered_ = true;
    return {{last.process, last.site, last.new_mode, last.old_mode}};
  }
  return {};
}

void Budget::forget(uint32_t process) {
  std::erase_if(changes_, [&](const ModeChange& change) { return change.process == process; });
}

}  // namespace aon::agent
