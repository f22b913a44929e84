/// Whether the members of a communicator of NCCL count its operations alike.
///
/// NCCL counts what a graph launches again where the call was captured with channels (level gpu and
/// above), and does not otherwise. The budget lowers the level of each node for itself: where
/// members have captured different numbers of calls without channels, and what a graph launches
/// is counted, an operation of one member is another one's next, or the one after.
///
/// Thread: one.   Cost: two counts per member that has captured a graph.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "writers/writer.h"

namespace aon::writers::nccl {

class GraphCounts {
 public:
  /// Rank `rank` of `communicator` (global) has told an operation with these NcclCallFlags.
  void add(uint32_t communicator, uint32_t rank, uint32_t flags);
  /// Communicators whose members do not count alike.
  std::set<uint32_t> unlike() const;

  void save(StateOut* out);
  Status load(const Model& model, StateIn* in);

 private:
  struct Counts {
    uint64_t uncounted = 0;  ///< calls captured without channels
    uint64_t replayed = 0;   ///< operations that graphs launched, counted ones
  };
  using Member = std::pair<uint32_t, uint32_t>;  ///< communicator, rank
  std::map<Member, Counts> counts_;
};

}  // namespace aon::writers::nccl
