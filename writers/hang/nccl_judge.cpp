// Of an operation of NCCL in flight: who of its members has come to it, passed it or is missing.

#include <algorithm>
#include <utility>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {
namespace {

constexpr uint32_t kMaxMembers = 1u << 20;  ///< that are looked at one by one

}  // namespace

/// Of those that are looked at one by one.
uint32_t NcclHangFinder::member_count(uint32_t communicator) const {
  return std::min(model_->communicators[communicator].rank_count, kMaxMembers);
}

/// Whether the member has surely not come to more operations of `kind` than it told.
bool NcclHangFinder::is_certain(const Progress& progress, const Kind& kind) const {
  if (progress.is_disputed || progress.is_unlike) return false;
  const uint64_t hole_end_ns = hole_end_ns_[progress.group];
  const auto reached = progress.enqueued.find(kind);
  if (reached == progress.enqueued.end()) {
    const bool may_be_forgotten = kind.second != kNoPeer && progress.is_forgetful;
    const bool has_first = progress.first_call == 0 || progress.first_call == UINT64_MAX;
    return hole_end_ns == 0 && !progress.gap && has_first && !may_be_forgotten;
  }
  return reached->second.doubts == 0 && reached->second.start_ns > hole_end_ns &&
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
    if (progress.oldest && enqueued->second.in_flight_from <= hang->sequence) {
      hang->called.push_back(*progress.oldest);
    } else {
      hang->passed.push_back({progress.group, member.second, enqueued->second.slot});
    }
    return;
  }
  if (!is_certain(progress, kind)) {
    ++hang->unknown_count;
    return;
  }
  hang->absent.push_back({progress.group, member.second, progress.slot});
  if (progress.oldest) hang->held.push_back(*progress.oldest);
}

/// How many collectives of a region one who arrived has come to; UINT64_MAX: it may be any number.
uint64_t NcclHangFinder::surely_reached(const NcclPart& part, uint32_t region) const {
  const Progress& progress = progress_.at({part.communicator, part.rank});
  const Kind kind{region, kNoPeer};
  if (!is_certain(progress, kind)) return UINT64_MAX;
  const auto reached = progress.enqueued.find(kind);
  return reached == progress.enqueued.end() ? 0 : reached->second.count;
}

/// All members do the same collectives in the same order: who is in one that all who arrived have
/// come to is merely behind, who is in another one is in a wrong one.
void NcclHangFinder::find_wrong(NcclHang* hang) const {
  std::map<uint32_t, uint64_t> least;  // of those that arrived, by region
  const auto is_wrong = [&](const NcclPart& part) {
    if (kind_of(part.region, part.operation.peer).second != kNoPeer) return false;
    const auto [found, is_new] = least.try_emplace(part.region, UINT64_MAX);
    for (size_t i = 0; is_new && i < hang->arrived.size(); ++i)
      found->second = std::min(found->second, surely_reached(hang->arrived[i], part.region));
    return found->second <= part.operation.sequence;
  };
  const auto wrong = std::stable_partition(hang->held.begin(), hang->held.end(),
                                           [&](const NcclPart& part) { return !is_wrong(part); });
  hang->wrong.assign(wrong, hang->held.end());
  hang->held.erase(wrong, hang->held.end());
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
    size_t next = 0;
    for (uint32_t rank = 0; rank < member_count(first.communicator); ++rank) {
      if (next < parts.size() && parts[next].rank == rank) {
        ++next;
      } else {
        judge_member({first.communicator, rank}, kind, &hang);
      }
    }
  }
  hang.arrived = std::move(parts);
  if (kind.second == kNoPeer) find_wrong(&hang);
  return hang;
}

}  // namespace aon::writers
