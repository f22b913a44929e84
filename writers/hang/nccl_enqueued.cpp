// Of NCCL's operations without times on the GPU: who has enqueued fewer than others, or other ones.

#include <algorithm>
#include <set>
#include <utility>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {

/// What those who have come to an operation have reached of each collective function, by region.
struct NcclHangFinder::Camp {
  std::map<uint32_t, uint64_t> most;
  std::map<uint32_t, uint64_t> behind_it;  ///< by one of them, after that operation
  std::set<uint32_t> uncertain;            ///< of which one of them may have reached more
};

/// All members do the same collectives in the same order, so one that is merely behind has not
/// come to more of any function than those who are ahead. Who has came to another one instead:
/// the newest such one. nullopt: that is not known, or it is merely behind.
std::optional<NcclPart> NcclHangFinder::instead(const Member& member, const Progress& progress,
                                                const Camp& camp) {
  std::optional<NcclPart> part;
  for (const auto& [kind, reached] : progress.enqueued) {
    if (kind.second != kNoPeer || camp.uncertain.count(kind.first) != 0) continue;
    const auto theirs = camp.most.find(kind.first);
    if (theirs != camp.most.end() && theirs->second >= reached.count) continue;
    if (part && part->operation.start_ns > reached.start_ns) continue;
    part.emplace();
    part->group = progress.group;
    part->communicator = member.first;
    part->rank = member.second;
    part->region = kind.first;
    part->slot = reached.slot;
    part->operation.start_ns = reached.start_ns;
    part->operation.sequence = reached.count - 1;
    part->operation.bytes = reached.bytes;
  }
  return part;
}

/// Whether the member has come to something that those who are in the operation called behind it.
bool NcclHangFinder::went_on(const Progress& progress, const Camp& camp) {
  for (const auto& [region, count] : camp.behind_it) {
    const auto reached = progress.enqueued.find({region, kNoPeer});
    if (reached != progress.enqueued.end() && reached->second.count >= count) return true;
  }
  return false;
}

void NcclHangFinder::join(const Progress& progress, uint32_t region, Camp* camp) const {
  const uint64_t call = progress.enqueued.at({region, kNoPeer}).call;
  for (const auto& [kind, reached] : progress.enqueued) {
    if (kind.second != kNoPeer) continue;
    uint64_t& most = camp->most[kind.first];
    most = std::max(most, reached.count);
    if (reached.call <= call) continue;
    uint64_t& least = camp->behind_it.try_emplace(kind.first, reached.count).first->second;
    least = std::min(least, reached.count);
  }
  for (const uint32_t other : collectives_) {
    if (!is_certain(progress, {other, kNoPeer})) camp->uncertain.insert(other);
  }
}

/// Who of the members has come to the last operation of a region that any of them has, and who not.
NcclHang NcclHangFinder::behind(Members::const_iterator begin, Members::const_iterator end,
                                uint32_t region, uint64_t count) const {
  NcclHang hang;
  hang.communicator = begin->first.first;
  hang.region = region;
  hang.sequence = count - 1;
  hang.is_enqueued_only = true;
  Camp camp;
  std::vector<Members::const_iterator> absent;
  for (auto it = begin; it != end; ++it) {
    const auto found = it->second.enqueued.find({region, kNoPeer});
    if (found == it->second.enqueued.end() || found->second.count < count) {
      const size_t before = hang.absent.size();
      judge_member(it->first, {region, kNoPeer}, &hang);
      if (hang.absent.size() != before) absent.push_back(it);
      continue;
    }
    join(it->second, region, &camp);
    NcclPart part;
    part.group = it->second.group;
    part.rank = it->first.second;
    part.communicator = hang.communicator;
    part.region = region;
    part.slot = found->second.slot;
    hang.arrived.push_back(part);
    hang.since_ns = std::min(hang.since_ns, last_ns_[part.group]);
  }
  hang.held.clear();
  for (const auto& it : absent) {
    if (auto part = instead(it->first, it->second, camp)) {
      hang.wrong.push_back(*part);
    } else if (went_on(it->second, camp)) {
      hang.went_on.push_back({it->second.group, it->first.second});
    }
  }
  hang.is_extra = hang.went_on.size() > hang.arrived.size();
  return hang;
}

/// How many collectives of each function any member has enqueued; notes which functions there are.
std::map<uint32_t, uint64_t> NcclHangFinder::collect(Members::const_iterator begin,
                                                     Members::const_iterator end) {
  std::map<uint32_t, uint64_t> most;
  collectives_.clear();
  for (auto it = begin; it != end; ++it) {
    for (const auto& [kind, reached] : it->second.enqueued) {
      if (kind.second == kNoPeer) most[kind.first] = std::max(most[kind.first], reached.count);
    }
  }
  for (const auto& [region, count] : most) collectives_.push_back(region);
  return most;
}

/// Members that have enqueued fewer operations than others, of which one is quiet, or other ones.
void NcclHangFinder::find_behind(uint32_t communicator, NcclHangReport* found) {
  const auto begin = progress_.lower_bound({communicator, 0});
  const auto end = progress_.lower_bound({communicator + 1, 0});
  const std::map<uint32_t, uint64_t> most = collect(begin, end);
  std::optional<NcclHang> camp;  // the largest one, where others are in something else
  for (const auto& [region, count] : most) {
    NcclHang hang = behind(begin, end, region, count);
    const bool has_quiet = std::any_of(hang.arrived.begin(), hang.arrived.end(),
                                       [&](const NcclPart& part) { return is_quiet(part.group); });
    if (!has_quiet || hang.absent.empty()) continue;
    if (!hang.wrong.empty()) {
      if (!camp || hang.arrived.size() > camp->arrived.size()) camp = std::move(hang);
    } else {
      keep_hang(std::move(hang), found);
    }
  }
  if (camp) keep_hang(std::move(*camp), found);
}

}  // namespace aon::writers
