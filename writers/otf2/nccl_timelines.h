/// Communicators of NCCL in the archive: each has one timeline per member, and its group of members
/// consists of these.
///
/// | as       | members are indices into      | an operation is                                |
/// |----------|-------------------------------|------------------------------------------------|
/// | itself   | COMM_LOCATIONS of CUDA, which | RmaCollectiveBegin and -End on a window of its |
/// |          | are the timelines             | communicator, a Send RmaPut, a Recv RmaGet     |
/// | MPI's    | COMM_LOCATIONS of MPI, behind | MpiCollectiveBegin and -End, MpiSend, MpiRecv  |
/// |          | the master threads            | (--nccl-as-mpi)                                |
///
/// A member without a timeline (its process told nothing, or died before) is shown as the master
/// thread of a process that is not in the communicator, or the first timeline.
/// Owner: Otf2Writer.   Thread: one.   Cost: proportional to members.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "writers/writer.h"

namespace aon::writers::otf2 {

constexpr uint32_t kNoWindow = 0xffffffffu;

class NcclTimelines {
 public:
  NcclTimelines(const Model& model, bool as_mpi);

  bool as_mpi() const { return as_mpi_; }
  bool is_empty() const { return locations_.empty(); }
  /// Ids of locations, in the order of their indices.
  const std::vector<uint64_t>& locations() const { return locations_; }
  /// Of a communicator (global id) of NCCL, indices by rank; empty when its members are not known.
  const std::vector<uint64_t>& members(uint32_t communicator) const;
  /// Of a communicator, kNoWindow where it has none. Windows of MPI come before.
  uint32_t window(uint32_t communicator) const;
  /// By number of the window behind those of MPI.
  const std::vector<uint32_t>& communicators_with_window() const { return windows_; }
  /// Of the largest communicator.
  size_t member_count() const { return member_count_; }

 private:
  using Places = std::map<uint32_t, uint64_t>;  ///< rank -> index in locations_
  void fill(uint32_t communicator, const Places& places);
  uint64_t index_of(uint64_t location);

  const Model& model_;
  bool as_mpi_;
  std::vector<uint64_t> locations_;
  std::unordered_map<uint64_t, uint64_t> indices_;  ///< by id of the location
  std::unordered_map<uint32_t, std::vector<uint64_t>> members_;
  std::vector<uint32_t> windows_;
  size_t member_count_ = 0;
};

}  // namespace aon::writers::otf2
