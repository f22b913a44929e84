/// In which annotation a thread was when: the innermost region that is open.
/// Thread: one.   Cost: 16 bytes per begin or end of an annotation; a binary search per question.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace aon::writers::devices {

class Borders {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  /// Times never decrease.
  void enter(uint64_t time_ns, uint32_t region) {
    open_.push_back(region);
    changes_.push_back({time_ns, region});
  }
  void leave(uint64_t time_ns) {
    if (open_.empty()) return;
    open_.pop_back();
    changes_.push_back({time_ns, open_.empty() ? kNone : open_.back()});
  }
  /// From here on nothing is known.
  void close(uint64_t time_ns) {
    if (open_.empty()) return;
    open_.clear();
    changes_.push_back({time_ns, kNone});
  }
  uint32_t region_at(uint64_t time_ns) const {
    const auto behind = std::upper_bound(
        changes_.begin(), changes_.end(), time_ns,
        [](uint64_t wanted_ns, const Change& change) { return wanted_ns < change.time_ns; });
    return behind == changes_.begin() ? kNone : std::prev(behind)->region;
  }
  size_t count() const { return changes_.size(); }

 private:
  struct Change {
    uint64_t time_ns;
    uint32_t region;
  };
  std::vector<Change> changes_;
  std::vector<uint32_t> open_;
};

}  // namespace aon::writers::devices
