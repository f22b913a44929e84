/// Whether the members of a communicator of NCCL count its operations alike.
///
/// NCCL counts what a graph launches again where the call was captured with channels (level gpu and
/// above), and does not otherwise. The budget lowers the level of each node for itself: where
/// members have captured different calls without channels, and what a graph launches is counted, an
/// operation of one member is another one's next, or the one after. Collectives are compared one by
/// one; transfers, of which members have their own, only as to whether all were captured alike.
///
/// Thread: one.   Cost: four counts per member that has captured a graph.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "writers/writer.h"

namespace aon::writers::nccl {

class GraphCounts {
 public:
  /// Rank `rank` of `communicator` (global) has told an operation with these NcclCallFlags. Those
  /// of a thread come in the order of its calls: members whose threads come in another order pass
  /// for unlike.
  void add(uint32_t communicator, uint32_t rank, RegionRole role, uint32_t flags);
  /// Communicators of which graphs launched something counted; `mixed`: and of which something was
  /// not counted.
  std::set<uint32_t> counted() const;
  std::set<uint32_t> mixed() const;
  /// Communicators whose members do not count alike.
  std::set<uint32_t> unlike() const;

  void save(StateOut* out);
  Status load(const Model& model, StateIn* in);

 private:
  struct Counts {
    uint64_t collectives = 0;                ///< captured ones
    uint64_t pattern = 0;                    ///< which of them were captured without channels
    std::array<uint64_t, 2> transfers = {};  ///< captured: with channels, without
    uint64_t replayed = 0;                   ///< operations that graphs launched, counted ones
    uint64_t uncounted = 0;                  ///< operations that are not
  };
  using Member = std::pair<uint32_t, uint32_t>;  ///< communicator, rank
  std::map<Member, Counts> counts_;
};

}  // namespace aon::writers::nccl
