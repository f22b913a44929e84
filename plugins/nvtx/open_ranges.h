/// Which ranges are started and not yet ended, so that the end of a number that is none, or is no
/// more, is no range. Open ones stand in one cache line each, found by the number.
///
/// Where a line is full a range is only counted: as long as there are such, ends of unknown numbers
/// are taken for theirs.
/// Thread: any, no lock; who ends a range has its number from who started it, and no other order is
/// needed.   Signal: safe.   Cost: one compare-and-swap each; 64 KiB for all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace aon::nvtx {

/// All zero is empty.
class OpenRanges {
 public:
  /// `number` is not 0. Two threads may have the same.
  void add(uint64_t number) {
    for (std::atomic<uint64_t>& place : line_of(number)) {
      uint64_t empty = 0;
      if (place.load(std::memory_order_relaxed) == 0 &&
          place.compare_exchange_strong(empty, number, std::memory_order_relaxed))
        return;
    }
    uncovered_.fetch_add(1, std::memory_order_relaxed);
  }

  /// False: it is not open.
  bool remove(uint64_t number) {
    for (std::atomic<uint64_t>& place : line_of(number)) {
      uint64_t same = number;
      if (place.load(std::memory_order_relaxed) == number &&
          place.compare_exchange_strong(same, 0, std::memory_order_relaxed))
        return true;
    }
    uint64_t count = uncovered_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (uncovered_.compare_exchange_weak(count, count - 1, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

 private:
  static constexpr size_t kLineBits = 10;
  static constexpr size_t kPlaces = 8;
  using Line = std::atomic<uint64_t>[kPlaces];

  Line& line_of(uint64_t number) {
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15u;
    return lines_[number * kMix >> (64 - kLineBits)];
  }

  alignas(64) Line lines_[size_t{1} << kLineBits];
  std::atomic<uint64_t> uncovered_;
};

}  // namespace aon::nvtx
