// Waits of single operations, for who has rows of them (operations.h).

#include "writers/nccl/lateness.h"
#include "writers/nccl/operations.h"

namespace aon::writers::nccl {

/// The key of a transfer has its source above its destination.
void LatenessAnalysis::note_wait(const Part& part, uint64_t wait_ns) {
  keep_wait(part, wait_ns);
  if (!tell_wait_) return;
  const bool is_transfer = model_->regions[part.region].role == RegionRole::kPointToPoint;
  const uint64_t other = part.place == 0 ? part.key : part.key >> 32 & 0x7fffffff;
  const int32_t peer = is_transfer ? static_cast<int32_t>(other) : kNoPeer;
  tell_wait_({summary_.members[part.member].group, part.communicator, part.region, peer,
              part.sequence, wait_ns});
}

}  // namespace aon::writers::nccl
