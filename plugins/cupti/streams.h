/// The timelines that work belongs to, each defined at its first use, and the devices they are of.
/// Thread: one.   Cost: about 5 ns for one that is known; 48 KiB.
#pragma once

#include <cstdint>

#include "cupti/parser.h"

namespace aon::cupti {

class Streams {
 public:
  static constexpr uint32_t kMaxStreams = 2048;  ///< more share the last one

  /// Id of the work's stream in records, from 1 on.
  uint32_t id_of(const Work& work);

 private:
  static constexpr uint32_t kEntries = 2 * kMaxStreams;  ///< a power of two, at most half full
  static constexpr uint32_t kMaxDevices = 64;

  struct Entry {
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint16_t id;  ///< 0: free
    Row row;
  };

  void define(const Entry& entry);
  void define_device(uint32_t device);

  Entry entries_[kEntries] = {};
  uint32_t count_ = 0;
  uint64_t known_devices_ = 0;  ///< bits
};

}  // namespace aon::cupti
