/// The timelines that work belongs to, each defined at its first use, and the devices they are of.
/// Thread: one.   Cost: about 1 ns for the last one of its row, 5 ns for a known one; 128 KiB.
#pragma once

#include <cstdint>

#include "cupti/parser.h"
#include "cupti/stream_ids.h"

namespace aon::cupti {

class Streams {
 public:
  /// Id of the work's stream in records, from 1 on.
  [[gnu::always_inline]] uint32_t id_of(const Work& work) {
    const Entry& last = last_[static_cast<uint32_t>(work.row)];
    const bool is_same = last.stream == work.stream && last.context == work.context &&
                         last.device == work.device && last.id != 0;
    if (__builtin_expect(is_same, 1)) return last.id;
    return find(work.row, work.device, work.context, work.stream);
  }

 private:
  using Entry = StreamIds::Entry;

  [[gnu::noinline]] uint32_t find(Row row, uint32_t device, uint32_t context, uint32_t stream);
  void define(const Entry& entry);
  void define_device(uint32_t device);

  Entry last_[kRowCount] = {};  ///< of each row the one that was asked for last, if not shared
  StreamIds ids_;
  uint64_t known_devices_ = 0;  ///< bits
};

}  // namespace aon::cupti
