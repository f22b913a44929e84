/// A piece of work as a record of the calling thread.
/// Thread: any.   Signal: safe.   Cost: some ns.
#pragma once

#include <aon/writer.h>

#include "cupti/parser.h"

namespace aon::cupti {

/// Ids in records: what it is, and whose timeline it belongs to.
struct SpanIds {
  uint32_t region;
  uint32_t stream;
};

/// The words are those of aon/device.h, straight into the record: an array between would be stored
/// by word and loaded by two, which waits for the stores. Times are in ticks.
[[gnu::always_inline]] inline void write_span(Writer* w, SpanIds ids, const Work& work,
                                              uint64_t start, uint64_t end) {
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
                       ids.region,
                       ids.stream,
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
