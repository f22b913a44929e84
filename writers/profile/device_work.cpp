#include "writers/profile/device_work.h"

#include <algorithm>

#include "writers/external_id.h"

namespace aon::writers::profile {

void DeviceWorkTable::begin(const Group& group, const Location& location) {
  last_row_ = nullptr;
  device_ = location.type == LocationType::kAcceleratorStream ? location.device : kNoDevice;
  if (device_ == kNoDevice || group_ == &group) return;
  group_ = &group;
  regions_ = LocalIds(group.region_map);
}

void DeviceWorkTable::add(const Event& event) {
  if (event.kind != EventKind::kDeviceWork || device_ == kNoDevice || external_id_of(event)) return;
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
  row.total_ns += duration_ns;
  row.histogram[histogram_bucket(duration_ns)] += 1;
  if (operation != DeviceOperation::kKernel) {
    row.bytes += event.bytes;
  } else if (const auto shape = event.kernel_shape()) {
    row.shapes.add(*shape, 1);
  }
}

std::vector<DeviceRow> DeviceWorkTable::rows(DeviceOperation operation) const {
  std::vector<DeviceRow> rows;
  for (const auto& [key, row] : rows_) {
    if (row.operation == operation) rows.push_back(row);
  }
  return rows;
}

void DeviceWorkTable::save(StateOut* out) {
  std::vector<DeviceRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back(row);
  out->put(rows);
  rows_.clear();
  last_row_ = nullptr;
}

Status DeviceWorkTable::load(StateIn* in) {
  std::vector<DeviceRow> rows;
  if (!in->get(&rows)) return in->status();
  for (const DeviceRow& row : rows) {
    if (row.group >= model_->groups.size()) return unknown_id("process");
    if (row.region >= model_->regions.size()) return unknown_id("region");
    if (!row.shapes.is_sound()) return unknown_id("launch shape");
    const auto [found, is_new] =
        rows_.try_emplace({row.operation, row.group, row.device, row.region}, row);
    if (is_new) continue;
    DeviceRow& sum = found->second;
    sum.count += row.count;
    sum.bytes += row.bytes;
    sum.total_ns += row.total_ns;
    sum.min_ns = std::min(sum.min_ns, row.min_ns);
    sum.max_ns = std::max(sum.max_ns, row.max_ns);
    for (size_t b = 0; b < kHistogramBuckets; ++b) sum.histogram[b] += row.histogram[b];
    sum.shapes.add(row.shapes);
  }
  return {};
}

}  // namespace aon::writers::profile
