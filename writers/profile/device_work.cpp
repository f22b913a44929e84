#include "writers/profile/device_work.h"

#include <algorithm>
#include <utility>

#include "writers/external_id.h"

namespace aon::writers::profile {
namespace {

void add_to(const DeviceRow& row, DeviceRow* sum) {
  sum->min_ns = sum->count == 0 ? row.min_ns : std::min(sum->min_ns, row.min_ns);
  sum->max_ns = std::max(sum->max_ns, row.max_ns);
  sum->count += row.count;
  sum->bytes += row.bytes;
  sum->total_ns += row.total_ns;
  for (size_t b = 0; b < kHistogramBuckets; ++b) sum->histogram[b] += row.histogram[b];
  sum->shapes.add(row.shapes);
}

}  // namespace

/// Processes with devices have the same part each, whoever goes through them.
DeviceWorkTable::DeviceWorkTable(const Model& model) : model_(&model) {
  const auto has_devices = [](const Group& group) {
    return group.process != nullptr && !group.process->device_streams.empty();
  };
  const auto count = std::count_if(model.groups.begin(), model.groups.end(), has_devices);
  const size_t share = kMaxRowsOfAll / std::max<size_t>(static_cast<size_t>(count), 1);
  max_rows_ = std::clamp(share, kLeastRows, kMaxRows);
}

/// All of the process has come: now it is known what took most of its time.
void DeviceWorkTable::end_group() {
  if (group_ == nullptr) return;
  constexpr auto kKernel = DeviceOperation::kKernel;
  std::vector<std::map<Key, DeviceRow>::iterator> rows;
  for (auto row = rows_.lower_bound({kKernel, group_->id, 0, 0});
       row != rows_.end() && row->second.operation == kKernel && row->second.group == group_->id;
       ++row) {
    if (row->second.region != kMoreKernels) rows.push_back(row);
  }
  if (rows.size() <= max_rows_) return;
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(max_rows_);
  std::nth_element(rows.begin(), first, rows.end(), [](const auto& a, const auto& b) {
    return a->second.total_ns != b->second.total_ns ? a->second.total_ns > b->second.total_ns
                                                    : a->first < b->first;
  });
  for (auto row = first; row != rows.end(); ++row) {
    const DeviceRow& one = (*row)->second;
    DeviceRow& more = rows_[{kKernel, one.group, one.device, kMoreKernels}];
    more.group = one.group;
    more.device = one.device;
    more.region = kMoreKernels;
    add_to(one, &more);
    rows_.erase(*row);
    ++joined_count_;
  }
  last_row_ = nullptr;
}

void DeviceWorkTable::begin(const Group& group, const Location& location) {
  last_row_ = nullptr;
  device_ = location.type == LocationType::kAcceleratorStream ? location.device : kNoDevice;
  if (device_ == kNoDevice || group_ == &group) return;
  end_group();
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
  end_group();
  std::vector<DeviceRow> rows;
  rows.reserve(rows_.size());
  for (const auto& [key, row] : rows_) rows.push_back(row);
  out->put(rows);
  out->put(std::exchange(joined_count_, 0));
  rows_.clear();
  last_row_ = nullptr;
}

Status DeviceWorkTable::load(StateIn* in) {
  std::vector<DeviceRow> rows;
  uint64_t joined_count = 0;
  if (!in->get(&rows) || !in->get(&joined_count)) return in->status();
  joined_count_ += joined_count;
  for (const DeviceRow& row : rows) {
    if (row.group >= model_->groups.size()) return unknown_id("process");
    const bool is_more = row.region == kMoreKernels && row.operation == DeviceOperation::kKernel;
    if (row.region >= model_->regions.size() && !is_more) return unknown_id("region");
    if (!row.shapes.is_sound()) return unknown_id("launch shape");
    const auto [found, is_new] =
        rows_.try_emplace({row.operation, row.group, row.device, row.region}, row);
    if (!is_new) add_to(row, &found->second);
  }
  return {};
}

}  // namespace aon::writers::profile
