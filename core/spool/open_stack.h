/// The regions (kBegin without its kEnd) that are open at some place of a stream. The agent keeps
/// one per stream that has such records, so that a block can be read without those before it.
/// Thread: a value, one owner.   Cost: a few ns per kBegin or kEnd.
#pragma once

#include <aon/record.h>

#include <cstdint>
#include <vector>

namespace aon::spool {

struct OpenRegion {
  uint32_t region;
  uint64_t start_ticks;
};

constexpr uint32_t kMaxOpenRegions = 1024;  ///< deeper ones are not tracked

class OpenStack {
 public:
  /// Follows a record: kBegin pushes, kEnd pops up to its region (an End whose Begin was lost is
  /// ignored, a Begin whose End was lost goes with the region around it).
  void follow(const RecordHead& head) {
    if (head.kind == RecordKind::kBegin) {
      if (regions_.size() < kMaxOpenRegions) regions_.push_back({head.id, head.start_ticks});
    } else if (head.kind == RecordKind::kEnd) {
      pop(head.id);
    }
  }
  void clear() noexcept { regions_.clear(); }
  void assign(std::vector<OpenRegion> regions) { regions_ = std::move(regions); }
  const std::vector<OpenRegion>& regions() const noexcept { return regions_; }

 private:
  void pop(uint32_t region) {
    for (size_t depth = regions_.size(); depth > 0; --depth) {
      if (regions_[depth - 1].region != region) continue;
      regions_.resize(depth - 1);
      return;
    }
  }
  std::vector<OpenRegion> regions_;
};

}  // namespace aon::spool
