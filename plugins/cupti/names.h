/// Names of kernels -> regions, each interned once. CUPTI gives a name as a pointer into memory of
/// its own, which may hold another name after a module was unloaded: so an entry is known by its
/// address and the hash of its text, and the runtime gets a copy. The text is looked at once in a
/// pass over a buffer: within one, all that stands at an address is what stands there now.
/// Thread: one.   Cost: about 3 ns for a name seen in this pass, 20 ns for one seen before; 96 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aon::cupti {

class RegionNames {
 public:
  /// From here on texts may have changed.
  void begin_pass() { ++pass_; }
  /// Id of the region; 0 when nothing is recorded. Names beyond the runtime's limit share one.
  uint32_t id_of(const char* name);

 private:
  static constexpr uint32_t kEntries = 4096;  ///< a power of two; a newer name takes the place

  struct Entry {
    const char* name;
    uint32_t hash;
    uint32_t region;
    uint64_t pass;  ///< in which the text was looked at
  };
  uint32_t look_up(const char* name, Entry* entry);

  uint64_t pass_ = 1;
  Entry entries_[kEntries] = {};
};

}  // namespace aon::cupti
