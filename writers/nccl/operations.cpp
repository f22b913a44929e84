#include "writers/nccl/operations.h"

#include <algorithm>

namespace aon::writers::nccl {

void OperationTable::begin(const Group& group) {
  if (group_ == &group) return;
  end_group();
  group_ = &group;
  communicators_ = profile::LocalIds(group.communicator_map);
  regions_ = profile::LocalIds(group.region_map);
}

void OperationTable::end_group() {
  for (const NcclOperation& operation : in_flight_.take()) append(operation);
}

void OperationTable::add(const NcclOperation& operation) {
  in_flight_.add(operation);
  if ((operation.flags & kNcclInFlight) == 0) append(operation);
}

void OperationTable::append(const NcclOperation& operation) {
  NcclOperation global = operation;
  global.communicator = communicators_.global(operation.communicator);
  global.region = regions_.global(operation.region);
  Histogram& histogram =
      histograms_[{global.communicator, global.region, log2_of(operation.bytes)}];
  ++histogram.count;
  histogram.bytes += operation.bytes;
  histogram.host_ns += operation.end_ns - std::min(operation.start_ns, operation.end_ns);
  if ((operation.flags & kNcclGpuTimed) != 0) {
    const bool is_first = histogram.timed_count++ == 0;
    histogram.timed_bytes += operation.bytes;
    histogram.gpu_ns += operation.gpu_ns;
    histogram.min_ns = is_first ? operation.gpu_ns : std::min(histogram.min_ns, operation.gpu_ns);
    histogram.max_ns = std::max(histogram.max_ns, operation.gpu_ns);
    ++histogram.by_duration[profile::histogram_bucket(operation.gpu_ns)];
  }
  if (rows_.size() == kMaxOperationRows) {
    ++left_out_count_;
    return;
  }
  rows_.push_back({group_->id, global});
}

}  // namespace aon::writers::nccl
