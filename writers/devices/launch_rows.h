/// Work of the devices of one process by what it is and the annotation that it was launched from.
/// Programs give each iteration a name of its own: beyond kMaxRows, or less where there are many
/// processes, the work of further annotations is that of one (LaunchRow::kMoreLaunchRegions), so
/// that no work is left out. Devices, whose work comes one behind the other, have the same part.
/// Of work without an annotation of its own, the names that took most time of a process have rows:
/// the others are one (LaunchRow::kMoreWork) on each device.
/// Thread: one.   Cost: a look into a map per piece of work; 128 bytes per row, kMaxRows and two
/// for each name and device at most, of which kMaxNames stay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "writers/devices/devices.h"

namespace aon::writers::devices {

class LaunchRows {
 public:
  // With an annotation: of a process, of all together, and of a process whatever the others have.
  static constexpr size_t kMaxRows = 1u << 14;
  static constexpr size_t kMaxRowsOfAll = 1u << 22;
  static constexpr size_t kLeastRows = 1u << 10;
  // Without: the same.
  static constexpr size_t kMaxNames = 1u << 13;
  static constexpr size_t kMaxNamesOfAll = 1u << 20;
  static constexpr size_t kLeastNames = 64;

  /// Processes with devices have the same share each, whoever goes through them.
  void begin(const Model& model) {
    const auto has_devices = [](const Group& group) {
      return group.process != nullptr && !group.process->device_streams.empty();
    };
    const auto count = std::count_if(model.groups.begin(), model.groups.end(), has_devices);
    const size_t processes = std::max<size_t>(static_cast<size_t>(count), 1);
    max_rows_ = rows_each_ = std::clamp(kMaxRowsOfAll / processes, kLeastRows, kMaxRows);
    max_names_ = std::clamp(kMaxNamesOfAll / processes, kLeastNames, kMaxNames);
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
  /// Those of the process `group`, when all of its work has come. Returns how many of its rows are
  /// others' now.
  size_t add_rows(uint32_t group, std::vector<LaunchRow>* rows) {
    const size_t joined_count = join_names();
    for (const auto& [key, row] : rows_) rows->emplace_back(row).group = group;
    return joined_count;
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;  ///< device, region, from
  using Rows = std::map<Key, LaunchRow>;

  static bool is_longer(Rows::iterator a, Rows::iterator b) {
    return std::pair(b->second.total_ns, a->first) < std::pair(a->second.total_ns, b->first);
  }
  static void add(const LaunchRow& row, LaunchRow* to) {
    to->count += row.count;
    to->total_ns += row.total_ns;
    to->known_count += row.known_count;
    to->delay_ns += row.delay_ns;
  }
  size_t join_names() {
    std::vector<Rows::iterator> names;
    for (auto row = rows_.begin(); row != rows_.end(); ++row) {
      const uint32_t from = row->second.from;
      if (from == LaunchRow::kNoLaunchRegion || from == LaunchRow::kMoreLaunchRegions)
        names.push_back(row);
    }
    if (names.size() <= max_names_) return 0;
    const auto first = names.begin() + static_cast<std::ptrdiff_t>(max_names_);
    std::nth_element(names.begin(), first, names.end(), is_longer);
    for (auto name = first; name != names.end(); ++name) {
      const LaunchRow& one = (*name)->second;
      LaunchRow& more = rows_[{one.device, LaunchRow::kMoreWork, one.from}];
      more.device = one.device;
      more.region = LaunchRow::kMoreWork;
      more.from = one.from;
      add(one, &more);
      rows_.erase(*name);
    }
    return static_cast<size_t>(names.end() - first);
  }

  size_t max_names_ = kMaxNames;
  size_t max_rows_ = kMaxRows;
  size_t rows_each_ = kMaxRows;  ///< of a device
  Rows rows_;
  std::map<uint32_t, size_t> annotated_counts_;  ///< rows that were wanted, by device
};

}  // namespace aon::writers::devices
