/// What the steps of NCCL's proxies waited for, where that tells who is to blame.
///
///     send:  waits for the GPU (8) | for the peer (20) | for the network (9)
///     recv:  waits for the network (10) | for the flush (11) | for the GPU (12)
///
/// Only sends tell it: a receive that waits for the network may as well wait for a sender that has
/// nothing to send yet. The GPU of a send may wait for data of yet another rank, so one link that
/// is slow lets all others wait for their GPUs: the GPUs are the cause only where that holds of
/// every link.
/// Thread: any.   Cost: a look at all rows.
#pragma once

#include <cstdint>

#include "writers/nccl/proxy_table.h"
#include "writers/writer.h"

namespace aon::writers::nccl {

/// Sends from one process to another, whose waiting for the network is longest beyond the usual.
struct SlowSends {
  uint32_t source = 0;  ///< groups
  uint32_t destination = 0;
  uint64_t bytes = 0;
  uint64_t network_ns = 0;
  double ratio = 0;  ///< to what the median link waits for as many bytes; 0: no link is slow
};

/// Of sends whose steps were told one by one; waits of steps that run side by side are added up.
struct ProxyWaits {
  uint64_t step_count = 0;
  uint64_t gpu_ns = 0;
  uint64_t peer_ns = 0;
  uint64_t network_ns = 0;
  bool each_waits_for_gpu = true;  ///< half of the waiting of each link or more is for its GPU
  uint32_t awaited = 0;            ///< the group that is waited for longest where it is the peer
  uint64_t awaited_ns = 0;
  SlowSends slow;

  uint64_t sum_ns() const { return gpu_ns + peer_ns + network_ns; }
};

ProxyWaits sum_up(const Model& model, const ProxyTable& proxies);

}  // namespace aon::writers::nccl
