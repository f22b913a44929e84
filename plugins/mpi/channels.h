/// Which send, or receive, of its envelope a partitioned request is (aon/mpi.h). MPI pairs the two
/// sides' in the order in which they are made, and has no wildcards there (MPI-4.1, 4.2.1). So each
/// that MPI has made is counted, also while the recording is paused and where the table of requests
/// is full: it leaves a hole, and those behind it keep their partners.
///
/// Thread: any.   Signal: no.   Cost: some 10 ns and a lock; maps memory when the map grows.
/// Errors: 0, not told: beyond what a number has room for, and all of an envelope that was refused.
#pragma once

#include <cstdint>

#include "mpi/handle_map.h"
#include "mpi/lock.h"

namespace aon::mpi {

class Channels {
 public:
  /// The number of the next one, from 1.
  uint16_t next(uint32_t communicator, uint64_t peer_tag, bool is_send) {
    const uint64_t place = uint64_t{communicator} << 1 | (is_send ? 1 : 0);
    const Handle key = hash_handle(hash_handle(place) ^ peer_tag);
    Guard guard(&lock_);
    const auto number = reinterpret_cast<uintptr_t>(counts_.find(key)) + 1;
    if (number == 1 && envelope_count_ == kMaxEnvelopes) return 0;
    if (!counts_.put(key, reinterpret_cast<void*>(number))) {
      envelope_count_ = kMaxEnvelopes;  // numbered later, its second would be the first
      return 0;
    }
    if (number == 1) ++envelope_count_;
    return number <= UINT16_MAX ? static_cast<uint16_t>(number) : 0;
  }

  static constexpr uint32_t kMaxEnvelopes = 1u << 17;  ///< 4 MiB

 private:
  SpinLock lock_;
  SharedHandleMap counts_ AON_GUARDED_BY(lock_);
  uint32_t envelope_count_ AON_GUARDED_BY(lock_) = 0;
};

}  // namespace aon::mpi
