// Whether the members of a communicator of NCCL have called the same collectives in the same order.
//
// Each function has a sequence of its own, so the sum of what a member has enqueued of all of them
// is the number of its latest collective, and those before it count down, as long as no record is
// missing among them.

#include <algorithm>
#include <set>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {

void NcclHangFinder::keep(uint64_t call, const Latest& latest, Progress* progress) {
  progress->latest.emplace(call, latest);
  if (progress->latest.size() > kMaxShapes) progress->latest.erase(progress->latest.begin());
}

/// The latest collectives of a member by their number on the communicator, as far as they are
/// known without a gap.
std::map<uint64_t, NcclShape> NcclHangFinder::numbered(const Progress& progress) const {
  std::map<uint64_t, NcclShape> shapes;
  uint64_t number = 0;
  for (const uint32_t region : collectives_) {
    if (!is_certain(progress, {region, kNoPeer})) return shapes;
    const auto reached = progress.enqueued.find({region, kNoPeer});
    if (reached != progress.enqueued.end()) number += reached->second.count;
  }
  for (auto latest = progress.latest.rbegin(); latest != progress.latest.rend(); ++latest) {
    const bool is_whole = latest->second.start_ns > hole_end_ns_[progress.group] &&
                          (!progress.gap || *progress.gap < latest->first);
    if (number == 0 || !is_whole) break;
    shapes.emplace(--number, latest->second.shape);
  }
  return shapes;
}

/// The first collective that some members called otherwise than others.
std::optional<NcclDisagreement> NcclHangFinder::disagreement(Members::const_iterator begin,
                                                             Members::const_iterator end) const {
  std::map<uint64_t, std::map<NcclShape, std::vector<NcclMember>>> by_number;
  for (auto it = begin; it != end; ++it) {
    for (const auto& [number, shape] : numbered(it->second))
      by_number[number][shape].push_back({it->second.group, it->first.second, it->second.slot});
  }
  const auto first = std::find_if(by_number.begin(), by_number.end(),
                                  [](const auto& entry) { return entry.second.size() > 1; });
  if (first == by_number.end()) return std::nullopt;
  NcclDisagreement found;
  found.communicator = begin->first.first;
  found.number = first->first;
  for (auto& [shape, members] : first->second) found.camps.push_back({shape, std::move(members)});
  std::stable_sort(found.camps.begin(), found.camps.end(), [](const auto& a, const auto& b) {
    return a.members.size() > b.members.size();
  });
  return found;
}

/// Of communicators of which a member is quiet (`candidates`), or has something in flight that
/// hangs, and of which the hangs do not say already who is in another operation.
void NcclHangFinder::find_disagreements(std::set<uint32_t> candidates, NcclHangReport* found) {
  for (const NcclHang& hang : found->hangs) candidates.insert(hang.communicator);
  for (const NcclHang& hang : found->hangs) {
    if (hang.differs || hang.is_extra || !hang.wrong.empty()) candidates.erase(hang.communicator);
  }
  for (const uint32_t communicator : candidates) {
    if (found->disagreements.size() >= kMaxHangs) break;
    const auto begin = progress_.lower_bound({communicator, 0});
    const auto end = progress_.lower_bound({communicator + 1, 0});
    collect(begin, end);
    if (auto one = disagreement(begin, end)) found->disagreements.push_back(std::move(*one));
  }
}

}  // namespace aon::writers
