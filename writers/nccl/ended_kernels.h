/// Of which operations of NCCL only the end was not told: its record was evicted, refused or lost.
///
/// NCCL's kernels of one communicator run one after the other: what was launched before one that
/// has ended is over. Before 2.28, and of what graphs launch again, no launch is told. But NCCL
/// begins all operations of a kernel, and then tells of each one that it is enqueued: one that
/// began later is of a later kernel.
/// Thread: one.   Cost: a look-up per operation; 16 bytes per communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "writers/writer.h"

namespace aon::writers::nccl {

class EndedKernels {
 public:
  static constexpr size_t kMaxCommunicators = size_t{1} << 18;  ///< as InFlight follows

  void clear() { latest_.clear(); }

  /// Whether it tells an end on the GPU.
  bool add(const NcclOperation& operation) {
    constexpr uint32_t kDone = kNcclGpuTimed | kNcclOverwritten;
    if ((operation.flags & kNcclInFlight) != 0 || (operation.flags & kDone) == 0) return false;
    if (latest_.size() >= kMaxCommunicators && latest_.count(operation.communicator) == 0)
      return true;
    Latest& latest = latest_[operation.communicator];
    latest.launch_ns = std::max(latest.launch_ns, operation.launch_ns);
    latest.start_ns = std::max(latest.start_ns, operation.start_ns);
    return true;
  }

  /// Of one that was told as in flight.
  bool is_over(const NcclOperation& operation) const {
    const auto found = latest_.find(operation.communicator);
    if (found == latest_.end()) return false;
    if (operation.launch_ns != 0 && operation.launch_ns < found->second.launch_ns) return true;
    const bool tells_enqueuing = (operation.flags & kNcclAbandoned) == 0;
    return tells_enqueuing && operation.end_ns < found->second.start_ns;
  }

 private:
  struct Latest {
    uint64_t launch_ns = 0;
    uint64_t start_ns = 0;
  };
  std::unordered_map<uint32_t, Latest> latest_;  ///< by local id
};

}  // namespace aon::writers::nccl
