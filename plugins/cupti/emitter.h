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

class Emitter {
 public:
  void use(const Functions* cupti) { cupti_ = cupti; }
  DeviceClock& clock() { return clock_; }

  /// Writes the record, unless the work began under a pause. What the ring refuses is counted by
  /// the core.
  void put(const Work& work);
  /// The same of a time without records, in ticks.
  void put_gap(const char* label, uint64_t start, uint64_t end);

 private:
  static constexpr uint32_t kFunctions = 1024;  ///< of each domain, by id

  void put_at(const Work& work, uint64_t start, uint64_t end);
  uint32_t region_of(const Work& work);
  uint32_t region_of_call(const Work& work);

  const Functions* cupti_ = nullptr;
  DeviceClock clock_;
  RegionNames names_;
  Streams streams_;
  uint32_t calls_[2][kFunctions] = {};  ///< regions
};

}  // namespace aon::cupti
