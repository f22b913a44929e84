#include "writers/nccl/operations.h"

#include <algorithm>

namespace aon::writers::nccl {
namespace {

struct SavedHistogram {
  uint32_t communicator;
  uint32_t region;
  uint32_t log2_bytes;
  Histogram sums;
};

void add(const Histogram& from, Histogram* to) {
  if (from.timed_count != 0) {
    to->min_ns = to->timed_count == 0 ? from.min_ns : std::min(to->min_ns, from.min_ns);
    to->max_ns = std::max(to->max_ns, from.max_ns);
  }
  to->count += from.count;
  to->bytes += from.bytes;
  to->host_ns += from.host_ns;
  to->timed_count += from.timed_count;
  to->timed_bytes += from.timed_bytes;
  to->gpu_ns += from.gpu_ns;
  for (size_t b = 0; b < to->by_duration.size(); ++b) to->by_duration[b] += from.by_duration[b];
}

}  // namespace

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
  keep({group_->id, global});
}

void OperationTable::keep(const OperationRow& row) {
  if (kept_count_ == kMaxOperationRows) {
    ++left_out_count_;
    return;
  }
  ++kept_count_;
  rows_.push_back(row);
}

void OperationTable::save(StateOut* out) {
  end_group();
  group_ = nullptr;
  std::vector<SavedHistogram> histograms;
  for (const auto& [key, histogram] : histograms_) {
    const auto [communicator, region, log2_bytes] = key;
    histograms.push_back({communicator, region, log2_bytes, histogram});
  }
  out->put(histograms);
  out->put(rows_);
  out->put(left_out_count_);
  histograms_.clear();
  rows_ = {};
  left_out_count_ = 0;
}

Status OperationTable::load(const Model& model, StateIn* in) {
  std::vector<SavedHistogram> histograms;
  std::vector<OperationRow> rows;
  uint64_t left_out_count = 0;
  if (!in->get(&histograms) || !in->get(&rows) || !in->get(&left_out_count)) return in->status();
  for (const SavedHistogram& saved : histograms) {
    nccl::add(saved.sums, &histograms_[{saved.communicator, saved.region, saved.log2_bytes}]);
  }
  for (const OperationRow& row : rows) {
    if (row.group >= model.groups.size()) return unknown_id("process");
    keep(row);
  }
  left_out_count_ += left_out_count;
  return {};
}

}  // namespace aon::writers::nccl
