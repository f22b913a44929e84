/// What each process had its devices do: kernels and graphs by name, copies and sets by kind. Times
/// are the device's own, also where work overlapped.
/// Thread: one.   Cost: O(1) per piece of work; memory a row of 1 KiB per process, device and
/// region.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "writers/profile/launch_shapes.h"
#include "writers/profile/local_ids.h"
#include "writers/profile/profile.h"
#include "writers/writer.h"

namespace aon::writers::profile {

struct DeviceRow {
  uint32_t group = 0;
  uint32_t device = 0;
  uint32_t region = 0;  ///< global
  DeviceOperation operation = DeviceOperation::kKernel;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t total_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  std::array<uint64_t, kHistogramBuckets> histogram{};
  LaunchShapes shapes;  ///< of kernels
};

class DeviceWorkTable {
 public:
  explicit DeviceWorkTable(const Model& model) : model_(&model) {}

  /// The events that follow are those of `location`.
  void begin(const Group& group, const Location& location);
  /// A kDeviceWork; others are ignored, and so is what no device did.
  void add(const Event& event);

  /// By process, device and region.
  std::vector<DeviceRow> rows(DeviceOperation operation) const;

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  using Key = std::tuple<DeviceOperation, uint32_t, uint32_t, uint32_t>;

  const Model* model_;
  const Group* group_ = nullptr;
  uint32_t device_ = kNoDevice;
  LocalIds regions_;
  std::map<Key, DeviceRow> rows_;
  // The row that the last event of each region had: kernels come in runs.
  uint32_t last_region_ = LocalIds::kNone;
  DeviceOperation last_operation_ = DeviceOperation::kOther;
  DeviceRow* last_row_ = nullptr;
};

}  // namespace aon::writers::profile
