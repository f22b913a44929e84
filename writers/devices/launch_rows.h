/// Work of the devices of one process by what it is and the annotation that it was launched from.
/// Programs give each iteration a name of its own: beyond kMaxRows, or less where there are many
/// processes, the work of further annotations is that of one (LaunchRow::kMoreLaunchRegions), so
/// that no work is left out. Devices, whose work comes one behind the other, have the same part.
/// Thread: one.   Cost: a look into a map per piece of work; 128 bytes per row, kMaxRows and two
/// for each name and device at most.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "writers/devices/devices.h"

namespace aon::writers::devices {

class LaunchRows {
 public:
  // With an annotation: of a process, of all together, and of a process whatever the others have.
  static constexpr size_t kMaxRows = 1u << 14;
  static constexpr size_t kMaxRowsOfAll = 1u << 22;
  static constexpr size_t kLeastRows = 1u << 10;

  /// Processes with devices have the same share each, whoever goes through them.
  void begin(const Model& model) {
    const auto has_devices = [](const Group& group) {
      return group.process != nullptr && !group.process->device_streams.empty();
    };
    const auto count = std::count_if(model.groups.begin(), model.groups.end(), has_devices);
    const size_t share = kMaxRowsOfAll / std::max<size_t>(static_cast<size_t>(count), 1);
    max_rows_ = rows_each_ = std::clamp(share, kLeastRows, kMaxRows);
  }
  void begin_process(const spool::Process& process) {
    std::set<uint32_t> devices;
    for (const auto& [id, stream] : process.device_streams) {
      if (stream.definition.device != kNoDevice) devices.insert(stream.definition.device);
    }
    rows_each_ = max_rows_ / std::max<size_t>(devices.size(), 1);
  }
  void clear() {
    rows_.clear();
    annotated_counts_.clear();
  }
  /// Of this work, launched from the annotation `from`.
  LaunchRow& row_of(uint32_t device, uint32_t region, uint32_t from) {
    auto found = rows_.find({device, region, from});
    if (found != rows_.end()) return found->second;
    if (from != LaunchRow::kNoLaunchRegion && annotated_counts_[device]++ >= rows_each_)
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
  size_t max_rows_ = kMaxRows;
  size_t rows_each_ = kMaxRows;  ///< of a device
  std::map<Key, LaunchRow> rows_;
  std::map<uint32_t, size_t> annotated_counts_;  ///< rows that were wanted, by device
};

}  // namespace aon::writers::devices
