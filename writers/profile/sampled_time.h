/// The time of timed calls of one region and of those that they stand for. Where one of N is timed
/// it stands for `weight` calls, but the others for no more time than has passed since the last
/// timed one, or the first event before any, of which one such interval is carried on
/// (docs/records.md): else one that was interrupted for 4 ms would stand for seconds.
/// Owner: the sums of one location.   Thread: one.   Cost: nothing where the weight is 1.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aon::writers::profile {

class SampledTime {
 public:
  /// The next call that was timed, and all that it stands for. `first_ns`: the location's first
  /// event.
  uint64_t weigh(uint64_t first_ns, uint64_t enter_ns, uint64_t leave_ns, uint32_t weight) {
    const uint64_t duration_ns = leave_ns - enter_ns;
    if (weight == 1) return duration_ns;
    const uint64_t last_ns = last_ns_ != 0 ? last_ns_ : first_ns;
    const uint64_t since_ns = enter_ns - std::min(enter_ns, last_ns);
    allowed_ns_ = std::min(allowed_ns_, since_ns) + since_ns;
    const uint64_t others_ns = std::min(duration_ns * (weight - 1), allowed_ns_);
    allowed_ns_ -= others_ns;
    last_ns_ = leave_ns;
    return duration_ns + others_ns;
  }

 private:
  uint64_t last_ns_ = 0;     ///< end of the last sampled call; 0: none
  uint64_t allowed_ns_ = 0;  ///< of the time before it, not yet given to calls
};

}  // namespace aon::writers::profile
