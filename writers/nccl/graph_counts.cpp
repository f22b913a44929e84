#include "writers/nccl/graph_counts.h"

namespace aon::writers::nccl {

namespace {

/// One bit pattern per place, so that a sum of some says which (splitmix64's last step).
uint64_t pattern_of(uint64_t place) {
  uint64_t bits = (place + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

}  // namespace

void GraphCounts::add(uint32_t communicator, uint32_t rank, RegionRole role, uint32_t flags) {
  if ((flags & (kNcclGraphCaptured | kNcclReplayed)) == 0) return;
  const bool is_uncounted = (flags & kNcclUncounted) != 0;
  Counts& counts = counts_[{communicator, rank}];
  if (is_uncounted) ++counts.uncounted;
  if ((flags & kNcclReplayed) != 0) {
    if (!is_uncounted) ++counts.replayed;
  } else if (role == RegionRole::kPointToPoint) {
    ++counts.transfers[is_uncounted ? 1 : 0];
  } else {
    if (is_uncounted) counts.pattern += pattern_of(counts.collectives);
    ++counts.collectives;
  }
}

std::set<uint32_t> GraphCounts::counted() const {
  std::set<uint32_t> found;
  for (const auto& [member, counts] : counts_)
    if (counts.replayed != 0) found.insert(member.first);
  return found;
}

std::set<uint32_t> GraphCounts::mixed() const {
  std::set<uint32_t> found;
  const std::set<uint32_t> told = counted();
  for (const auto& [member, counts] : counts_)
    if (counts.uncounted != 0 && told.count(member.first) != 0) found.insert(member.first);
  return found;
}

std::set<uint32_t> GraphCounts::unlike() const {
  std::set<uint32_t> unlike;
  const std::set<uint32_t> told = counted();
  for (auto begin = counts_.begin(); begin != counts_.end();) {
    const uint32_t communicator = begin->first.first;
    bool is_even = true;
    std::array<bool, 2> has_transfers = {};
    const uint64_t pattern = begin->second.pattern;
    for (; begin != counts_.end() && begin->first.first == communicator; ++begin) {
      const Counts& counts = begin->second;
      is_even = is_even && counts.pattern == pattern;
      for (size_t i = 0; i < has_transfers.size(); ++i)
        has_transfers[i] |= counts.transfers[i] != 0;
    }
    const bool is_mixed = !is_even || (has_transfers[0] && has_transfers[1]);
    if (is_mixed && told.count(communicator) != 0) unlike.insert(communicator);
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
    known.collectives += counts.collectives;
    known.pattern += counts.pattern;
    for (size_t i = 0; i < known.transfers.size(); ++i) known.transfers[i] += counts.transfers[i];
    known.replayed += counts.replayed;
    known.uncounted += counts.uncounted;
  }
  return {};
}

}  // namespace aon::writers::nccl
