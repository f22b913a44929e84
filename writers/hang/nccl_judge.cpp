// Of an operation of NCCL in flight: who of its members has come to it, passed it or is missing.

#include <algorithm>
#include <utility>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {
namespace {

constexpr uint32_t kMaxMembers = 1u << 20;  ///< that are looked at one by one

}  // namespace

/// Whether the member has surely not come to more operations of `kind` than it told.
bool NcclHangFinder::is_certain(const Progress& progress, const Kind& kind) const {
  const uint64_t hole_end_ns = hole_end_ns_[progress.group];
  const auto reached = progress.enqueued.find(kind);
  if (reached == progress.enqueued.end()) return hole_end_ns == 0 && !progress.gap;
  return reached->second.start_ns > hole_end_ns &&
         (!progress.gap || *progress.gap < reached->second.call);
}

/// Says of one member what it is to the hang.
void NcclHangFinder::judge_member(const Member& member, const Kind& kind, NcclHang* hang) const {
  const auto found = progress_.find(member);
  if (found == progress_.end()) {
    ++hang->unknown_count;
    return;
  }
  const Progress& progress = found->second;
  const auto enqueued = progress.enqueued.find(kind);
  if (enqueued != progress.enqueued.end() && enqueued->second.count > hang->sequence) {
    hang->passed.push_back({progress.group, member.second});
    return;
  }
  if (!is_certain(progress, kind)) {
    ++hang->unknown_count;
    return;
  }
  hang->absent.push_back({progress.group, member.second});
  const bool is_collective = kind.second == kNoPeer;
  if (progress.oldest && is_collective &&
      kind_of(progress.oldest->region, progress.oldest->operation.peer).second == kNoPeer)
    hang->wrong.push_back(*progress.oldest);
}

NcclHang NcclHangFinder::judge(std::vector<NcclPart> parts) const {
  const NcclPart& first = parts.front();
  NcclHang hang;
  hang.communicator = first.communicator;
  hang.region = first.region;
  hang.sequence = first.operation.sequence;
  for (const NcclPart& part : parts) {
    hang.since_ns = std::min(hang.since_ns, part.operation.start_ns);
    hang.differs |= part.operation.bytes != first.operation.bytes ||
                    part.operation.type != first.operation.type ||
                    part.operation.peer != first.operation.peer;
  }
  const Kind kind = kind_of(first.region, first.operation.peer);
  if (kind.second != kNoPeer) {
    // The other end calls the other function, and counts alike.
    const bool is_send = model_->regions[first.region].name == "ncclSend";
    const auto other = std::find_if(model_->regions.begin(), model_->regions.end(),
                                    [&](const GlobalRegion& region) {
                                      return region.name == (is_send ? "ncclRecv" : "ncclSend");
                                    });
    const Member peer{first.communicator, static_cast<uint32_t>(kind.second)};
    const auto region = static_cast<uint32_t>(other - model_->regions.begin());
    judge_member(peer, {region, static_cast<int32_t>(first.rank)}, &hang);
  } else {
    const uint32_t size =
        std::min(model_->communicators[first.communicator].rank_count, kMaxMembers);
    size_t next = 0;
    for (uint32_t rank = 0; rank < size; ++rank) {
      if (next < parts.size() && parts[next].rank == rank) {
        ++next;
      } else {
        judge_member({first.communicator, rank}, kind, &hang);
      }
    }
  }
  hang.arrived = std::move(parts);
  return hang;
}

}  // namespace aon::writers
