/// What each process had its devices do: kernels and graphs by name, copies and sets by kind. Times
/// are the device's own, also where work overlapped.
///
/// Processes share the room for kernels. Of one that has more names than its part those stay that
/// took most of its time; the others are one, kMoreKernels, on each device, so that no work is left
/// out.
/// Thread: one.   Cost: O(1) per piece of work; memory rows of 1 KiB: of kernels kMaxRowsOfAll, and
/// all those of one process; of other work 15 per process and device.
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
  static constexpr uint32_t kMoreKernels = 0xfffffffeu;  ///< as a region: of those without a row
  // Of kernels: of all processes together, of one, and of one whatever the others have.
  static constexpr size_t kMaxRowsOfAll = 1u << 18;
  static constexpr size_t kMaxRows = 1u << 13;
  static constexpr size_t kLeastRows = 32;

  explicit DeviceWorkTable(const Model& model);

  /// The events that follow are those of `location`.
  void begin(const Group& group, const Location& location);
  /// A kDeviceWork; others are ignored, and so is what no device did.
  void add(const Event& event);
  /// No more come.
  void finish() { end_group(); }

  /// By process, device and region.
  std::vector<DeviceRow> rows(DeviceOperation operation) const;
  /// Kernels of a process and device that have no row of their own.
  uint64_t joined_count() const { return joined_count_; }

  void save(StateOut* out);
  Status load(StateIn* in);

 private:
  using Key = std::tuple<DeviceOperation, uint32_t, uint32_t, uint32_t>;

  void end_group();

  const Model* model_;
  size_t max_rows_;  ///< of kernels of a process
  uint64_t joined_count_ = 0;
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
