/// When a process captures graphs: a launch into a capture runs nothing. Which stream a launch is
/// for no record of a call tells, so that each launch of the process may be of it meanwhile.
/// Thread: one.   Cost: 16 bytes for each begin and end, at most kMaxBorders; a sort.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "writers/devices/blind_times.h"

namespace aon::writers::devices {

struct CaptureBorder {
  uint64_t time_ns;
  uint32_t timeline;  ///< of a thread's calls of the runtime, or of the driver
  bool is_begin;

  bool operator<(const CaptureBorder& other) const {
    return std::tie(timeline, time_ns) < std::tie(other.timeline, other.time_ns);
  }
};

class Captures {
 public:
  static constexpr size_t kMaxBorders = 1u << 20;

  void clear() {
    borders_.clear();
    has_rests_ = false;
  }
  /// Of a capture from before a rest of the budget to behind one, launches may be recorded alone.
  void note_rest() { has_rests_ = true; }
  bool has_rests() const { return has_rests_; }
  bool is_empty() const { return borders_.empty(); }
  void add(const CaptureBorder& border) {
    if (borders_.size() <= kMaxBorders) borders_.push_back(border);
  }

  /// One whose end is not recorded lasts for ever, one whose begin is not from the border before;
  /// beyond the limit nothing is known. merge() is done.
  BlindTimes times() const {
    BlindTimes times;
    if (borders_.size() > kMaxBorders) {
      times.add(0, UINT64_MAX);
      return times;
    }
    std::vector<CaptureBorder> borders = borders_;
    std::sort(borders.begin(), borders.end());
    uint64_t from_ns = 0;
    uint32_t depth = 0;
    for (size_t i = 0; i < borders.size(); ++i) {
      const CaptureBorder& border = borders[i];
      if (border.is_begin && depth++ == 0) from_ns = border.time_ns;
      if (!border.is_begin && (depth == 0 || --depth == 0)) {
        times.add(from_ns, border.time_ns);
        from_ns = border.time_ns;
      }
      if (i + 1 < borders.size() && borders[i + 1].timeline == border.timeline) continue;
      if (depth != 0) times.add(from_ns, UINT64_MAX);
      from_ns = 0;
      depth = 0;
    }
    times.merge();
    return times;
  }

 private:
  std::vector<CaptureBorder> borders_;
  bool has_rests_ = false;
};

}  // namespace aon::writers::devices
