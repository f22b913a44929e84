/// Which thread made the call that has a correlation id: records of waiting do not tell.
/// Thread: one.   Cost: 32 KiB; one load or store.
#pragma once

#include <cstdint>

namespace aon::cupti {

class CallThreads {
 public:
  static constexpr uint32_t kEntries = 4096;  ///< of the youngest calls

  void note(uint32_t correlation, uint32_t thread) {
    entries_[correlation % kEntries] = {correlation, thread};
  }
  /// 0: not known, or not any more.
  uint32_t thread_of(uint32_t correlation) const {
    const Entry& entry = entries_[correlation % kEntries];
    return entry.correlation == correlation && correlation != 0 ? entry.thread : 0;
  }

 private:
  struct Entry {
    uint32_t correlation;
    uint32_t thread;
  };
  Entry entries_[kEntries] = {};
};

}  // namespace aon::cupti
