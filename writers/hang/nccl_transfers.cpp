// Of NCCL's transfers without times on the GPU: who waits for the other end, and whose is missing.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "writers/hang/nccl_hang.h"

namespace aon::writers {

/// A member has enqueued more transfers to or from another one than that has the other way round:
/// as NCCL counts both ends of a pair alike, the other one has not come to those. One hang for all
/// who wait for one member in one function; receives first, for a send may end in NCCL's buffers.
/// Where both have come to the latest one, their bytes are compared.
void NcclHangFinder::find_lone_ends(uint32_t communicator, NcclHangReport* found) const {
  const auto end = progress_.lower_bound({communicator + 1, 0});
  std::map<std::tuple<bool, uint32_t, uint32_t>, NcclHang>
      lone;  // by whether it sends, region, peer
  std::vector<NcclHang> unlike;
  for (auto it = progress_.lower_bound({communicator, 0}); it != end; ++it) {
    const uint32_t rank = it->first.second;
    if (!is_quiet(it->second.group) || it->second.is_disputed) continue;
    for (const auto& [kind, reached] : it->second.enqueued) {
      const auto peer = static_cast<uint32_t>(kind.second);
      const bool is_pair = kind.second >= 0 && peer != rank;
      if (!is_pair || (kind.first != send_ && kind.first != receive_)) continue;
      NcclPart part;
      part.group = it->second.group;
      part.rank = rank;
      part.communicator = communicator;
      part.region = kind.first;
      part.slot = reached.slot;
      part.operation.sequence = reached.count - 1;
      part.operation.peer = kind.second;
      part.operation.bytes = reached.bytes;
      NcclHang one;
      one.sequence = part.operation.sequence;
      judge_member({communicator, peer}, other_end(kind, rank), &one);
      compare_ends(part, &one);
      // Of two that are quiet the sender tells it.
      const bool is_told =
          one.other_end && kind.first == receive_ && is_quiet(one.other_end->group);
      if ((one.absent.empty() && !one.other_end) || is_told) continue;
      NcclHang& hang =
          one.other_end ? unlike.emplace_back() : lone[{kind.first == send_, kind.first, peer}];
      hang.communicator = communicator;
      hang.region = kind.first;
      hang.sequence = one.sequence;
      hang.is_enqueued_only = true;
      hang.absent = std::move(one.absent);
      hang.other_end = one.other_end;
      hang.since_ns = std::min(hang.since_ns, last_ns_[part.group]);
      hang.arrived.push_back(part);
    }
  }
  for (NcclHang& hang : unlike) keep_hang(std::move(hang), found);
  for (auto& [key, hang] : lone) keep_hang(std::move(hang), found);
}

}  // namespace aon::writers
