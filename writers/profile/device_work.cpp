#include "writers/profile/device_work.h"

#include <algorithm>

namespace aon::writers::profile {

void DeviceWorkTable::begin(const Group& group, const Location& location) {
  last_row_ = nullptr;
  device_ = location.type == LocationType::kAcceleratorStream ? location.device : kNoDevice;
  if (device_ == kNoDevice || group_ == &group) return;
  group_ = &group;
  regions_ = LocalIds(group.region_map);
}

void DeviceWorkTable::add(const Event& event) {
  if (event.kind != EventKind::kDeviceWork || device_ == kNoDevice) return;
  const uint32_t region = regions_.global(event.region);
  if (region >= model_->regions.size()) return;
  const DeviceOperation operation = event.device_operation();
  if (last_row_ == nullptr || region != last_region_ || operation != last_operation_) {
    last_row_ = &rows_[{operation, group_->id, device_, region}];
    last_region_ = region;
    last_operation_ = operation;
  }
  DeviceRow& row = *last_row_;
  const uint64_t duration_ns = event.device_duration_ns();
  row.group = group_->id;
  row.device = device_;
  row.region = region;
  row.operation = operation;
  row.min_ns = row.count == 0 ? duration_ns : std::min(row.min_ns, duration_ns);
  row.max_ns = std::max(row.max_ns, duration_ns);
  row.count += 1;
  row.bytes += event.bytes;
  row.total_ns += duration_ns;
}

std::vector<DeviceRow> DeviceWorkTable::rows(DeviceOperation operation) const {
  std::vector<DeviceRow> rows;
  for (const auto& [key, row] : rows_) {
    if (row.operation == operation) rows.push_back(row);
  }
  return rows;
}

}  // namespace aon::writers::profile
