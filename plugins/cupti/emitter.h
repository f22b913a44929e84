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
  /// refuses is counted by the core. Inlined, so that `work` need not be in memory: nothing that is
  /// called from here gets its address.
  [[gnu::always_inline]] void put(const Work& work) {
    const uint64_t start = clock_.to_ticks(work.start_ns);
    if (AON_UNLIKELY(aon_was_paused(start))) {
      leave_out(work.row, start, work.start_ns, work.end_ns);
    } else {
      put_at(work, start, clock_.to_ticks(work.end_ns));
    }
  }
  /// Tells the gap of what was left out since the last call.
  void tell_pause();
  /// The same of a time without records, in ticks.
  void put_gap(const char* label, uint64_t start, uint64_t end);

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

/// The words are those of aon/device.h, straight into the record: an array between would be stored
/// by word and loaded by two, which waits for the stores.
inline void Emitter::put_at(const Work& work, uint64_t start, uint64_t end) {
  const uint32_t region = region_of(work);
  const uint32_t stream = streams_.id_of(work);
  Writer* w = attached_writer();
  if (AON_UNLIKELY(w == nullptr)) return;
  const uint64_t duration = end > start ? end - start : 0;
  const bool is_wide = duration >> 32 != 0;
  const uint32_t slots = is_wide ? 3 : 2;
  emit(w, slots, is_counted(RecordKind::kDeviceSpan), end, [&](char* at) {
    auto* head = reinterpret_cast<RecordHead*>(at);
    *head = RecordHead{start,
                       static_cast<uint32_t>(duration),
                       RecordKind::kDeviceSpan,
                       static_cast<uint8_t>(slots),
                       static_cast<uint16_t>(is_wide ? kWideDuration : 0),
                       region,
                       stream,
                       work.bytes};
    auto* out = reinterpret_cast<uint64_t*>(head + 1);
    out[0] = uint64_t{work.correlation} | static_cast<uint64_t>(work.operation) << 32 |
             uint64_t{work.block} << 40;
    out[1] = uint64_t{work.graph} | uint64_t{work.graph_node} << 32;
    out[2] = work.grid;
    out[3] = static_cast<uint64_t>(work.from) | static_cast<uint64_t>(work.to) << 8 |
             uint64_t{work.registers} << 16 | uint64_t{work.block >> 24} << 24 |
             uint64_t{work.shared_bytes} << 32;
    if (AON_LIKELY(!is_wide)) return;
    for (uint32_t i = 4; i < 7; ++i) out[i] = 0;
    out[7] = duration;
  });
}

}  // namespace aon::cupti
