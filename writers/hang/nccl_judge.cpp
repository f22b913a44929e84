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
  if (progress.is_disputed || progress.is_unlike) return false;
  const uint64_t hole_end_ns = hole_end_ns_[progress.group];
  const auto reached = progress.enqueued.find(kind);
  if (reached == progress.enqueued.end()) {
    const bool may_be_forgotten = kind.second != kNoPeer && progress.is_forgetful;
    const bool has_first = progress.first_call == 0 || progress.first_call == UINT32_MAX;
    return hole_end_ns == 0 && !progress.gap && has_first && !may_be_forgotten;
  }
  return reached->second.is_mixed == 0 && reached->second.start_ns > hole_end_ns &&
         (!progress.gap || *progress.gap < reached->second.call);
}

/// Says of one member what it is to the hang.
void NcclHangFinder::judge_member(const Member& member, const Kind& kind, NcclHang* hang) const {
  const auto found = progress_.find(member);
  if (found == progress_.end()) {
    ++hang->unknown_count;
    return;
  }
  if (found->second.is_unlike) {
    ++hang->unlike_count;
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

/// What the member at the other end of a transfer calls; it counts alike.
NcclHangFinder::Kind NcclHangFinder::other_end(const Kind& kind, uint32_t rank) const {
  return {kind.first == send_ ? receive_ : send_, static_cast<int32_t>(rank)};
}

/// Whether the other end of a transfer was called with other bytes, which NCCL does not allow.
void NcclHangFinder::compare_ends(const NcclPart& part, NcclHang* hang) const {
  const NcclOperation& operation = part.operation;
  const Member peer{part.communicator, static_cast<uint32_t>(operation.peer)};
  const auto found = progress_.find(peer);
  if (found == progress_.end() || found->second.is_disputed || found->second.is_unlike) return;
  const Kind kind = other_end(kind_of(part.region, operation.peer), part.rank);
  const auto reached = found->second.enqueued.find(kind);
  // Only of its latest one the size is kept.
  if (reached == found->second.enqueued.end() || reached->second.count != operation.sequence + 1 ||
      reached->second.bytes == operation.bytes)
    return;
  NcclPart& other = hang->other_end.emplace();
  other.group = found->second.group;
  other.rank = peer.second;
  other.communicator = part.communicator;
  other.region = kind.first;
  other.operation.sequence = operation.sequence;
  other.operation.bytes = reached->second.bytes;
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
    const Member peer{first.communicator, static_cast<uint32_t>(kind.second)};
    judge_member(peer, other_end(kind, first.rank), &hang);
    compare_ends(first, &hang);
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
