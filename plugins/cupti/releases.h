/// Calls that release a primary context: the end of it, before which its records are flushed, or of
/// one of many uses. UCX retains and releases one for each transfer, in the thread that moves the
/// program's data, and CUPTI does not tell which release is the last. So one in kReleasePauseNs is
/// flushed, and waits for another flush only where releases are rare. Whether a context has ended
/// behind one that was not is to be looked for later: take_skipped().
/// Thread: any.   Cost: a few atomic operations.
#pragma once

#include <atomic>
#include <cstdint>

namespace aon::cupti {

constexpr uint64_t kReleasePauseNs = 500'000'000;
constexpr uint64_t kRareReleaseNs = 10'000'000'000;

class Releases {
 public:
  enum class Flush : uint8_t { kNone = 0, kIfFree, kWaiting };

  /// What is to be done before `device` is released.
  Flush begin(uint64_t now_ns, int32_t device) {
    const uint64_t last_ns = last_ns_.load(std::memory_order_relaxed);
    const uint64_t passed_ns = now_ns - last_ns;
    if (last_ns != 0 && passed_ns < kReleasePauseNs) {
      skip(device);
      return Flush::kNone;
    }
    last_ns_.store(now_ns, std::memory_order_relaxed);
    return last_ns != 0 && passed_ns < kRareReleaseNs ? Flush::kIfFree : Flush::kWaiting;
  }
  /// Nothing was flushed before a release of `device`.
  void skip(int32_t device) {
    if (device >= 0 && device < kDevices)
      skipped_.fetch_or(uint64_t{1} << device, std::memory_order_relaxed);
  }
  /// Devices of which skip() was told since the last time, a bit each.
  uint64_t take_skipped() { return skipped_.exchange(0, std::memory_order_relaxed); }

 private:
  static constexpr int32_t kDevices = 64;
  std::atomic<uint64_t> last_ns_{0};
  std::atomic<uint64_t> skipped_{0};
};

}  // namespace aon::cupti
