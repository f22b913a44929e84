/// The borders of pauses, for aon_was_paused(): a ring of the last kBorders.
/// Thread: note() any, those of one process one after the other; was_paused() any.   Signal: safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace aon::runtime {

class PauseLog {
 public:
  static constexpr uint64_t kBorders = 1024;

  /// The recording is paused or goes on from `ticks` on. Borders alternate, the first one pauses.
  void note(uint64_t ticks) noexcept {
    const uint64_t number = count_.load(std::memory_order_relaxed);
    borders_[number % kBorders].store(ticks, std::memory_order_relaxed);
    count_.store(number + 1, std::memory_order_release);  // pairs with runtime:pause
  }

  bool was_paused(uint64_t ticks) const noexcept {
    const uint64_t count = count_.load(std::memory_order_acquire);  // pairs with runtime:pause
    // One less than there are: the oldest may be in the making.
    const uint64_t oldest = count < kBorders ? 0 : count - kBorders + 1;
    for (uint64_t number = count; number > oldest; --number) {
      const uint64_t border = borders_[(number - 1) % kBorders].load(std::memory_order_relaxed);
      if (border <= ticks) return number % 2 == 1;
    }
    return false;
  }

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> borders_[kBorders] = {};
};

}  // namespace aon::runtime
