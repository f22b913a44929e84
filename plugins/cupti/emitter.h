/// Work -> records of the calling thread (kDeviceSpan), with the regions, streams and devices they
/// name.
/// Thread: one.   Cost: about 40 ns per piece of work; no allocation.
#pragma once

#include "cupti/clock.h"
#include "cupti/library.h"
#include "cupti/names.h"
#include "cupti/parser.h"
#include "cupti/streams.h"

namespace aon::cupti {

/// Label of a gap in which work of devices may have been.
constexpr char kGapOfWork[] = "[GPU work not recorded]";

class Emitter {
 public:
  void use(const Functions* cupti) { cupti_ = cupti; }
  DeviceClock& clock() { return clock_; }
  bool has_clock() const { return clock_.pair_count() >= 2; }

  /// Before the records of a buffer.
  void begin_buffer() { names_.begin_pass(); }
  /// Writes the record, unless the work began under a pause: that is told as a gap. What the ring
  /// refuses is counted by the core.
  void put(const Work& work);
  /// Tells the gap of what was left out since the last call.
  void tell_pause();
  /// The same of a time without records, in ticks.
  void put_gap(const char* label, uint64_t start, uint64_t end);

 private:
  static constexpr uint32_t kFunctions = 1024;  ///< of each domain, by id

  void put_at(const Work& work, uint64_t start, uint64_t end);
  uint32_t region_of(const Work& work);
  uint32_t region_of_call(const Work& work);

  void leave_out(const Work& work, uint64_t start);

  const Functions* cupti_ = nullptr;
  DeviceClock clock_;
  RegionNames names_;
  Streams streams_;
  uint32_t calls_[2][kFunctions] = {};  ///< regions
  uint64_t pause_start_ = 0;            ///< ticks, of work that was left out
  uint64_t pause_end_ = 0;              ///< 0: of none
  uint64_t pause_end_ns_ = 0;           ///< the same time
};

}  // namespace aon::cupti
