/// Goes through the work of one device in order of time, and sums up what it did and why it had
/// nothing to do, in total and in each of some windows of time.
///
///     work       |#####|             |####|
///                      |    idle     |         = until the launch was called: host wait
///     launch                |==|-               + the launch and its way to the device
///                                               + the rest: starved
///
/// Thread: one.   Cost: about 50 ns per piece of work; memory for what runs at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "writers/devices/blind_times.h"
#include "writers/devices/devices.h"

namespace aon::writers::devices {

/// What a launch may need from the end of its call to the device: it takes 2 to 3 us to an H200
/// that has nothing to do, and up to 8. The nodes of a graph arrive with the first of them.
constexpr uint64_t kArrivalNs = 10'000;

struct Interval {
  uint64_t start_ns;
  uint64_t end_ns;
  WorkClass work;
};

/// The call that started it; end 0: unknown.
struct Launch {
  uint64_t start_ns;
  uint64_t end_ns;
};

struct Window {
  uint64_t begin_ns;
  uint64_t end_ns;
  DeviceTimes times;  ///< span_ns and what is not told of idle time are the caller's
};

class Sweep {
 public:
  static constexpr size_t kMaxRunning = 1u << 16;  ///< pieces of work at a time

  /// `windows` in order of their begin; they may overlap. `blind` and the begins of launches whose
  /// work is missing, in order, outlive the sweep: between two pieces of work with such a launch
  /// between theirs it is not known what ran.
  explicit Sweep(std::vector<Window> windows, std::span<const BlindTime> blind = {},
                 std::span<const uint64_t> missing_launches_ns = {})
      : windows_(std::move(windows)), blind_(blind), missing_launches_ns_(missing_launches_ns) {}

  /// The next piece of work, none of which begins earlier than the one before.
  void add(const Interval& interval, const Launch& launch);
  void finish();

  const DeviceTimes& total() const { return total_; }
  const IdleFigures& idle(IdleReason reason) const { return idle_[static_cast<size_t>(reason)]; }
  const std::vector<Window>& windows() const { return windows_; }
  /// Of the first work, and of the end of the last.
  uint64_t first_ns() const { return first_ns_; }
  uint64_t last_ns() const { return now_ns_; }

 private:
  struct End {
    uint64_t time_ns;
    WorkClass work;
    bool operator>(const End& other) const { return time_ns > other.time_ns; }
  };

  void advance(uint64_t to_ns);
  void account_work(uint64_t from_ns, uint64_t to_ns);
  void account_idle(uint64_t from_ns, uint64_t to_ns, IdleReason reason);
  void account_gap(uint64_t to_ns, const Launch& launch);
  bool is_blind(uint64_t to_ns, const Launch& launch);
  void spread(uint64_t from_ns, uint64_t to_ns,
              const std::function<void(DeviceTimes*, uint64_t)>& add);

  DeviceTimes total_;
  IdleFigures idle_[kIdleReasonCount];
  std::vector<Window> windows_;
  std::span<const BlindTime> blind_;  ///< what has not passed
  std::span<const uint64_t> missing_launches_ns_;
  size_t first_window_ = 0;  ///< that has not ended
  bool has_begun_ = false;
  uint64_t first_ns_ = 0;
  uint64_t now_ns_ = 0;  ///< accounted up to here
  Launch last_launch_ = {};
  uint32_t running_[kWorkClassCount] = {};
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
};

}  // namespace aon::writers::devices
