#include "writers/nccl/graph_counts.h"

#include <algorithm>

namespace aon::writers::nccl {

void GraphCounts::add(uint32_t communicator, uint32_t rank, uint32_t flags) {
  constexpr uint32_t kOfGraph = kNcclGraphCaptured | kNcclReplayed;
  if ((flags & kOfGraph) == 0 || (flags & kNcclInFlight) != 0) return;
  const bool is_uncounted = (flags & kNcclUncounted) != 0;
  Counts& counts = counts_[{communicator, rank}];
  if (is_uncounted && (flags & kNcclGraphCaptured) != 0) ++counts.uncounted;
  if (!is_uncounted && (flags & kNcclReplayed) != 0) ++counts.replayed;
}

std::set<uint32_t> GraphCounts::unlike() const {
  std::set<uint32_t> unlike;
  for (auto begin = counts_.begin(); begin != counts_.end();) {
    const uint32_t communicator = begin->first.first;
    const auto end = std::find_if(begin, counts_.end(),
                                  [&](const auto& one) { return one.first.first != communicator; });
    const bool is_counted =
        std::any_of(begin, end, [](const auto& one) { return one.second.replayed != 0; });
    const bool is_even = std::all_of(begin, end, [&](const auto& one) {
      return one.second.uncounted == begin->second.uncounted;
    });
    if (is_counted && !is_even) unlike.insert(communicator);
    begin = end;
  }
  return unlike;
}

void GraphCounts::save(StateOut* out) { out->put(std::exchange(counts_, {})); }

Status GraphCounts::load(const Model& model, StateIn* in) {
  std::map<Member, Counts> told;
  if (!in->get(&told)) return in->status();
  for (const auto& [member, counts] : told) {
    if (!in->check(member.first < model.communicators.size())) return in->status();
    Counts& known = counts_[member];
    known.uncounted += counts.uncounted;
    known.replayed += counts.replayed;
  }
  return {};
}

}  // namespace aon::writers::nccl
