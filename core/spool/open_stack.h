/// The regions (kBegin without its kEnd) that are open at some place of a stream. The agent keeps
/// one per stream that has such records, so that a block can be read without those before it.
/// Thread: a value, one owner.   Cost: a few ns per kBegin or kEnd.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <vector>

namespace aon::spool {

/// `region` of an OpenRegion that stands for `start_ticks` regions which began in a hole: nothing
/// else is known of them.
constexpr uint32_t kUnseenRegion = 0xfffffffeu;

struct OpenRegion {
  uint32_t region;
  uint64_t start_ticks;
};

constexpr uint32_t kMaxOpenRegions = 1024;  ///< deeper ones are not tracked

class OpenStack {
 public:
  /// Follows a record: kBegin pushes, kEnd pops up to its region (an End without a Begin goes by,
  /// a Begin without an End goes with the region around it), kLost does what was done in the hole.
  void follow(const RecordHead& head) {
    if (head.kind == RecordKind::kBegin) {
      if (regions_.size() < kMaxOpenRegions) regions_.push_back({head.id, head.start_ticks});
    } else if (head.kind == RecordKind::kEnd) {
      pop(head.id);
    } else if (head.kind == RecordKind::kLost) {
      pop_newest(ended_in_hole(head.a32));
      push_unseen(begun_in_hole(head.a32));
    }
  }
  void clear() noexcept { regions_.clear(); }
  void assign(std::vector<OpenRegion> regions) { regions_ = std::move(regions); }
  const std::vector<OpenRegion>& regions() const noexcept { return regions_; }

 private:
  void pop(uint32_t region) {
    if (!regions_.empty() && regions_.back().region == kUnseenRegion) {
      pop_newest(1);
      return;
    }
    for (size_t depth = regions_.size(); depth > 0; --depth) {
      if (regions_[depth - 1].region != region) continue;
      regions_.resize(depth - 1);
      return;
    }
  }
  void pop_newest(uint64_t count) {
    if (count == kAllRegions) regions_.clear();
    while (count != 0 && !regions_.empty()) {
      OpenRegion& newest = regions_.back();
      const uint64_t here = newest.region == kUnseenRegion ? newest.start_ticks : 1;
      if (here > count) {
        newest.start_ticks -= count;
        return;
      }
      count -= here;
      regions_.pop_back();
    }
  }
  void push_unseen(uint32_t count) {
    if (count == 0) return;
    if (!regions_.empty() && regions_.back().region == kUnseenRegion) {
      regions_.back().start_ticks += count;
    } else if (regions_.size() < kMaxOpenRegions) {
      regions_.push_back({kUnseenRegion, count});
    }
  }
  std::vector<OpenRegion> regions_;
};

}  // namespace aon::spool
