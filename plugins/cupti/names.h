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
  /// Id of the region; 0 when nothing is recorded. Names beyond the runtime's limit share one, and
  /// those that are cut may.
  [[gnu::always_inline]] uint32_t id_of(const char* name) {
    Entry& entry = entries_[place_of(name)];
    if (__builtin_expect(entry.name == name && entry.pass == pass_, 1)) return entry.region;
    return look_up(name, &entry);
  }
  /// Names were seen for which the runtime had no room, or which were too long.
  bool has_shared() const { return has_shared_; }
  bool has_cut() const { return has_cut_; }

 private:
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15ull;
  static constexpr uint32_t kEntries = 4096;  ///< a power of two; a newer name takes the place

  struct Entry {
    const char* name;
    uint32_t hash;
    uint32_t region;
    uint64_t pass;  ///< in which the text was looked at; 0: it has no region
  };
  static uint32_t place_of(const char* name) {
    static_assert(kEntries == 1u << (64 - 52));
    return static_cast<uint32_t>((reinterpret_cast<uintptr_t>(name) * kMultiplier) >> 52);
  }
  [[gnu::noinline]] uint32_t look_up(const char* name, Entry* entry);

  uint64_t pass_ = 1;
  bool has_shared_ = false;
  bool has_cut_ = false;
  Entry entries_[kEntries] = {};
};

}  // namespace aon::cupti
