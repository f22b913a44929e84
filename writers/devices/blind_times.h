/// When work of the devices of a process may be missing: the budget's pauses and the program's,
/// records that were lost, and work that was left out.
/// Thread: one.   Cost: 16 bytes each, at most kMaxCount: then neighbours become one, so that more
/// counts as not recorded, never less.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace aon::writers::devices {

struct BlindTime {
  uint64_t begin_ns;
  uint64_t end_ns;
};

class BlindTimes {
 public:
  static constexpr size_t kMaxCount = 1u << 16;

  void clear() { times_.clear(); }

  void add(uint64_t begin_ns, uint64_t end_ns) {
    if (end_ns <= begin_ns) return;
    if (times_.size() == kMaxCount) {
      merge();
      if (times_.size() > kMaxCount / 2) join_pairs();
    }
    times_.push_back({begin_ns, end_ns});
  }

  /// In order, none of them touching another. To be called before what follows.
  void merge() {
    std::sort(times_.begin(), times_.end(),
              [](const BlindTime& a, const BlindTime& b) { return a.begin_ns < b.begin_ns; });
    size_t count = 0;
    for (const BlindTime& time : times_) {
      if (count != 0 && time.begin_ns <= times_[count - 1].end_ns) {
        times_[count - 1].end_ns = std::max(times_[count - 1].end_ns, time.end_ns);
      } else {
        times_[count++] = time;
      }
    }
    times_.resize(count);
  }

  std::span<const BlindTime> all() const { return times_; }
  uint64_t total_ns() const { return overlap_ns(0, UINT64_MAX); }

  uint64_t overlap_ns(uint64_t begin_ns, uint64_t end_ns) const {
    if (end_ns <= begin_ns) return 0;
    auto time = std::partition_point(times_.begin(), times_.end(),
                                     [&](const BlindTime& one) { return one.end_ns <= begin_ns; });
    uint64_t sum_ns = 0;
    for (; time != times_.end() && time->begin_ns < end_ns; ++time)
      sum_ns += std::min(end_ns, time->end_ns) - std::max(begin_ns, time->begin_ns);
    return sum_ns;
  }

 private:
  void join_pairs() {
    size_t count = 0;
    for (size_t i = 0; i < times_.size(); i += 2) {
      const BlindTime& last = times_[std::min(i + 1, times_.size() - 1)];
      times_[count++] = {times_[i].begin_ns, last.end_ns};
    }
    times_.resize(count);
  }

  std::vector<BlindTime> times_;
};

}  // namespace aon::writers::devices
