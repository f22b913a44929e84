/// How much of the ring is filled before our thread rests, so that the agent can empty it: the same
/// rate always, kRecords each kRestUs. A rest costs about 15 us of CPU time, so where the ring has
/// shown that it takes more at once, the rests are fewer and longer.
///
///     size: kRecords --kCalmRests without a refused record--> doubles, up to kMaxRecords
///           any size --a record was refused--> kRecords, and never as large again
///
/// Thread: one.   Cost: an addition per record.
#pragma once

#include <cstdint>

namespace aon::cupti {

class Pace {
 public:
  static constexpr uint32_t kRecords = 512;  ///< 32 KiB of the ring
  static constexpr uint32_t kMaxRecords = 4096;
  static constexpr uint32_t kRestUs = 1000;
  static constexpr uint32_t kCalmRests = 32;

  /// After a record: true when it is time to rest.
  bool is_due() { return ++count_ >= size_; }

  /// How long. `refused_count`: of all records until now.
  uint32_t rest_us(uint64_t refused_count) {
    const uint32_t us = size_ / kRecords * kRestUs;
    count_ = 0;
    if (refused_count != refused_count_) {
      refused_count_ = refused_count;
      if (size_ > kRecords) largest_ = size_ / 2;
      size_ = kRecords;
      calm_rests_ = 0;
    } else if (++calm_rests_ >= kCalmRests && size_ < largest_) {
      size_ *= 2;
      calm_rests_ = 0;
    }
    return us;
  }

 private:
  uint32_t size_ = kRecords;
  uint32_t largest_ = kMaxRecords;
  uint32_t count_ = 0;
  uint32_t calm_rests_ = 0;
  uint64_t refused_count_ = 0;
};

}  // namespace aon::cupti
