/// Which thread made the call that has a correlation id, and when: records of waiting and of ids
/// do not tell. And how calls are spread over threads: the budget is about those that make them.
/// Thread: one.   Cost: 65 KiB; three loads or stores.
#pragma once

#include <cstdint>

namespace aon::cupti {

class CallThreads {
 public:
  static constexpr uint32_t kEntries = 4096;  ///< of the youngest calls
  static constexpr uint32_t kShares = 256;    ///< of threads; two in one count as one

  struct Call {
    uint32_t correlation;
    uint32_t thread;
    uint64_t start_ticks;  ///< of its record; 0: it has none
  };

  void note(uint32_t correlation, uint32_t thread, uint64_t start_ticks = 0) {
    entries_[correlation % kEntries] = {correlation, thread, start_ticks};
    ++shares_[thread % kShares];
  }
  /// Null: not known, or not any more.
  const Call* find(uint32_t correlation) const {
    const Call& call = entries_[correlation % kEntries];
    return call.correlation == correlation && correlation != 0 ? &call : nullptr;
  }
  /// 0: the same.
  uint32_t thread_of(uint32_t correlation) const {
    const Call* call = find(correlation);
    return call != nullptr ? call->thread : 0;
  }
  /// Of the calls since the last time: all over those of the busiest thread, so that eight equal
  /// ones are 8, and one beside many that hardly call is 1. Without calls what it was.
  double take_width() {
    uint64_t sum = 0;
    uint32_t most = 0;
    for (uint32_t& share : shares_) {
      sum += share;
      most = share > most ? share : most;
      share = 0;
    }
    if (most != 0) width_ = static_cast<double>(sum) / most;
    return width_;
  }

 private:
  Call entries_[kEntries] = {};
  uint32_t shares_[kShares] = {};
  double width_ = 1;
};

}  // namespace aon::cupti
