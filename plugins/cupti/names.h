/// Names of kernels -> regions, each interned once. CUPTI gives a name as a pointer into memory of
/// its own, which may hold another name after a module was unloaded: so an entry is known by its
/// address and the hash of its text, and the runtime gets a copy.
/// Thread: one.   Cost: about 20 ns for a name seen before; 64 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::cupti {

class RegionNames {
 public:
  /// Id of the region; 0 when nothing is recorded. Names beyond the runtime's limit share one.
  uint32_t id_of(const char* name);

 private:
  static constexpr uint32_t kEntries = 4096;  ///< a power of two; a newer name takes the place

  struct Entry {
    const char* name;
    uint32_t hash;
    uint32_t region;
  };
  Entry entries_[kEntries] = {};
};

}  // namespace aon::cupti
