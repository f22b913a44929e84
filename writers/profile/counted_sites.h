/// Call sites of which one thread has counted every call (docs/records.md). Those records of such a
/// site that stand for no others are of calls that found something and were not timed: each is
/// written behind its call, and as long as writing it takes.
/// Owner: the sums of one location.   Thread: one.   Cost: a load; begin() a pass over the counts.
#pragma once

#include <aon/ring.h>

#include <algorithm>
#include <bitset>

#include "writers/writer.h"

namespace aon::writers::profile {

class CountedSites {
 public:
  /// Those of the thread that has `slot`.
  void begin(const spool::Process* process, uint32_t slot) {
    sites_.reset();
    if (process == nullptr) return;
    for (auto it = process->counts.lower_bound({slot, 0});
         it != process->counts.end() && it->first.first == slot; ++it) {
      const uint32_t site = it->first.second;
      if (site < kMaxCounters && it->second != 0 && !was_full(*process, site)) sites_.set(site);
    }
  }

  /// Of the kEnter of a call.
  bool was_timed(const Event& enter) const {
    return enter.weight > 1 || enter.region >= kMaxCounters || !sites_[enter.region];
  }

  /// True when some calls of `site` were recorded in full and therefore not counted.
  static bool was_full(const spool::Process& process, uint32_t site) {
    return std::any_of(process.budget_changes.begin(), process.budget_changes.end(),
                       [site](const BudgetDefinition& change) {
                         return change.site == site &&
                                (change.old_mode == kModeFull || change.new_mode == kModeFull);
                       });
  }

 private:
  std::bitset<kMaxCounters> sites_;
};

}  // namespace aon::writers::profile
