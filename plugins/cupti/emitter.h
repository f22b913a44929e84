/// Work -> records of the calling thread (kDeviceSpan), with the regions, streams and devices they
/// name.
/// Thread: one.   Cost: about 20 ns per piece of work; no allocation.
#pragma once

#include <aon/pause.h>
#include <aon/writer.h>

#include "cupti/clock.h"
#include "cupti/library.h"
#include "cupti/names.h"
#include "cupti/parser.h"
#include "cupti/span.h"
#include "cupti/streams.h"

namespace aon::cupti {

class Emitter {
 public:
  void use(const Functions* cupti) { cupti_ = cupti; }
  DeviceClock& clock() { return clock_; }
  const DeviceClock& clock() const { return clock_; }
  bool has_clock() const { return clock_.pair_count() >= 2; }

  /// Before the records of a buffer.
  void begin_buffer() { names_.begin_pass(); }
  /// Writes the record, unless the work began under a pause: that is told as a gap. What the ring
  /// refuses is counted by the core. Inlined, so that `work` need not be in memory: nothing that is
  /// called from here gets its address. Returns the record's start, 0: there is none.
  [[gnu::always_inline]] uint64_t put(const Work& work) {
    const uint64_t start = clock_.to_ticks(work.start_ns);
    if (AON_UNLIKELY(aon_was_paused(start))) {
      leave_out(work.row, start, work.start_ns, work.end_ns);
      return 0;
    }
    put_at(work, start, clock_.to_ticks(work.end_ns));
    return start;
  }
  /// Beside the record of a call of `thread` that begins at `start`.
  void put(const ExternalId& id, uint32_t thread, uint64_t start);
  /// Tells the gap of what was left out since the last call.
  void tell_pause();
  /// Of names: see RegionNames.
  const RegionNames& names() const { return names_; }

 private:
  static constexpr uint32_t kFunctions = 1024;  ///< of each domain, by id

  [[gnu::always_inline]] void put_at(const Work& work, uint64_t start, uint64_t end);
  [[gnu::always_inline]] uint32_t region_of(const Work& work) {
    if (work.row != Row::kCalls) return names_.id_of(work.name != nullptr ? work.name : work.label);
    if (work.function >= kFunctions) return region_of_unknown_call();
    const uint32_t region = calls_[work.is_driver_call ? 0 : 1][work.function];
    return AON_LIKELY(region != 0) ? region : find_call(work.is_driver_call, work.function);
  }
  [[gnu::noinline]] uint32_t region_of_unknown_call();
  [[gnu::noinline]] uint32_t find_call(bool is_driver_call, uint32_t function);
  [[gnu::noinline]] void leave_out(Row row, uint64_t start, uint64_t start_ns, uint64_t end_ns);

  const Functions* cupti_ = nullptr;
  DeviceClock clock_;
  RegionNames names_;
  Streams streams_;
  uint32_t calls_[2][kFunctions] = {};  ///< regions
  uint64_t pause_start_ = 0;            ///< ticks, of work that was left out
  uint64_t pause_end_ = 0;              ///< 0: of none
  uint64_t pause_end_ns_ = 0;           ///< the same time
};

inline void Emitter::put_at(const Work& work, uint64_t start, uint64_t end) {
  const SpanIds ids = {region_of(work), streams_.id_of(work)};
  Writer* w = attached_writer();
  if (AON_UNLIKELY(w == nullptr)) return;
  write_span(w, ids, work, start, end);
}

}  // namespace aon::cupti
