/// Work of the devices of one process by what it is and the annotation that it was launched from.
/// Programs give each iteration a name of its own: beyond kMaxRows the work of further annotations
/// is that of one (LaunchRow::kMoreLaunchRegions), so that no work is left out.
/// Thread: one.   Cost: a look into a map per piece of work; 128 bytes per row, kMaxRows and two for
/// each name and device at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "writers/devices/devices.h"

namespace aon::writers::devices {

class LaunchRows {
 public:
  static constexpr size_t kMaxRows = 1u << 14;  ///< with an annotation

  void clear() {
    rows_.clear();
    annotated_count_ = 0;
  }
  /// Of this work, launched from the annotation `from`.
  LaunchRow& row_of(uint32_t device, uint32_t region, uint32_t from) {
    auto found = rows_.find({device, region, from});
    if (found != rows_.end()) return found->second;
    if (from != LaunchRow::kNoLaunchRegion && annotated_count_++ >= kMaxRows)
      from = LaunchRow::kMoreLaunchRegions;
    LaunchRow& row = rows_[{device, region, from}];
    row.device = device;
    row.region = region;
    row.from = from;
    return row;
  }
  /// Those of the process `group`.
  void add_rows(uint32_t group, std::vector<LaunchRow>* rows) const {
    for (const auto& [key, row] : rows_) rows->emplace_back(row).group = group;
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  ///< device, region, from
  std::map<Key, LaunchRow> rows_;
  size_t annotated_count_ = 0;  ///< rows that were wanted
};

}  // namespace aon::writers::devices
