/// Ids of the timelines that work belongs to. Streams of devices and rows of threads are limited
/// each by themselves: threads that come and go by the thousand leave streams alone. Beyond the
/// limits, streams share one of their device, and threads one row of their kind.
/// Thread: one.   Cost: 5 ns for one that is known; 128 KiB.
#pragma once

#include <cstdint>

#include "cupti/parser.h"

namespace aon::cupti {

class StreamIds {
 public:
  static constexpr uint32_t kMaxStreams = 1024;  ///< of devices
  static constexpr uint32_t kMaxThreads = 512;   ///< in each kind of row
  static constexpr uint32_t kMaxDevices = 64;    ///< more share the last one's
  static constexpr uint32_t kShared = 0xffffffffu;

  struct Entry {
    uint32_t device;
    uint32_t context;
    uint32_t stream;  ///< kShared: of several
    uint16_t id;      ///< from 1 on; 0: free
    Row row;
  };
  struct Found {
    const Entry* entry;
    bool is_new;
  };

  Found find(Row row, uint32_t device, uint32_t context, uint32_t stream) {
    Entry& entry = place(row, device, context, stream);
    if (entry.id != 0) return {&entry, false};
    uint32_t& count = counts_[static_cast<uint32_t>(row)];
    if (count < (row == Row::kStream ? kMaxStreams : kMaxThreads)) {
      ++count;
      return fill(&entry, {device, context, stream, 0, row});
    }
    const uint32_t of_device = device < kMaxDevices ? device : kMaxDevices - 1;
    Entry& shared = place(row, row == Row::kStream ? of_device : 0, 0, kShared);
    if (shared.id != 0) return {&shared, false};
    return fill(&shared, {row == Row::kStream ? of_device : 0, 0, kShared, 0, row});
  }

 private:
  static constexpr uint32_t kEntryBits = 13;
  static constexpr uint32_t kEntries = 1u << kEntryBits;
  static_assert(kMaxStreams + kMaxDevices + kRowCount * (kMaxThreads + 1) < kEntries / 2);

  /// Its own, or the free one where it belongs.
  Entry& place(Row row, uint32_t device, uint32_t context, uint32_t stream) {
    uint64_t key = (uint64_t{device} << 48) ^ (uint64_t{context} << 32) ^ stream ^
                   (static_cast<uint64_t>(row) << 60);
    key *= 0x9e3779b97f4a7c15ull;
    for (auto at = static_cast<uint32_t>(key >> (64 - kEntryBits));; at = (at + 1) % kEntries) {
      Entry& entry = entries_[at];
      const bool is_it = entry.stream == stream && entry.context == context &&
                         entry.device == device && entry.row == row;
      if (entry.id == 0 || is_it) return entry;
    }
  }
  Found fill(Entry* entry, const Entry& wanted) {
    *entry = wanted;
    entry->id = static_cast<uint16_t>(++last_id_);
    return {entry, true};
  }

  Entry entries_[kEntries] = {};
  uint32_t counts_[kRowCount] = {};
  uint32_t last_id_ = 0;
};

}  // namespace aon::cupti
