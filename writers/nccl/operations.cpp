#include "writers/nccl/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/digits.h"

namespace aon::writers::nccl {
namespace {

struct SavedHistogram {
  uint32_t communicator;
  uint32_t region;
  uint32_t log2_bytes;
  Histogram sums;
};

static_assert(profile::kHistogramBuckets == kNcclDurationBuckets);

constexpr size_t kLeastRows = 1024;

Histogram histogram_of(const spool::NcclSums& told) {
  const NcclSumsDefinition& sums = told.sums;
  Histogram made = {sums.count,       sums.bytes,  sums.host_ns, sums.timed_count,
                    sums.timed_bytes, sums.gpu_ns, sums.min_ns,  sums.max_ns};
  for (size_t i = 0; i < told.by_duration.size(); ++i) {
    const size_t bucket = std::min(sums.first_bucket + i, profile::kHistogramBuckets - 1);
    made.by_duration[bucket] += told.by_duration[i];
  }
  return made;
}

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

void add_time(uint64_t bytes, uint64_t gpu_ns, Histogram* histogram) {
  const bool is_first = histogram->timed_count++ == 0;
  histogram->timed_bytes += bytes;
  histogram->gpu_ns += gpu_ns;
  histogram->min_ns = is_first ? gpu_ns : std::min(histogram->min_ns, gpu_ns);
  histogram->max_ns = std::max(histogram->max_ns, gpu_ns);
  ++histogram->by_duration[profile::histogram_bucket(gpu_ns)];
}

uint64_t pair_of(uint32_t from, uint32_t to) { return uint64_t{from} << 32 | to; }

uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

}  // namespace

OperationTable::OperationTable(const Model* model) {
  for (uint32_t region = 0; model != nullptr && region < model->regions.size(); ++region) {
    if (model->regions[region].name == "ncclSend") send_ = region;
    if (model->regions[region].name == "ncclRecv") receive_ = region;
  }
}

void OperationTable::begin(const Group& group) {
  if (group_ == &group) return;
  end_group();
  group_ = &group;
  communicators_ = profile::LocalIds(group.communicator_map);
  regions_ = profile::LocalIds(group.region_map);
  first_row_ = rows_.size();
  row_communicators_.clear();
  rows_by_call_.clear();
  ranks_.clear();
  if (group.process != nullptr) {
    for (const auto& [local, communicator] : group.process->communicators)
      ranks_[local] = communicator.definition.rank;
  }
  add_refused();
}

void OperationTable::add_refused() {
  if (group_->process == nullptr) return;
  for (const auto& [key, told] : group_->process->nccl_sums) {
    const auto [communicator, region, log2_bytes] = key;
    const uint32_t bounded = std::min<uint32_t>(log2_bytes, 63);
    nccl::add(
        histogram_of(told),
        &histograms_[{communicators_.global(communicator), regions_.global(region), bounded}]);
    calls_[communicator].told_count += told.sums.count;
    ended_[key] = told.sums.in_flight_count;
  }
}

void OperationTable::end_group() {
  for (const auto& [key, count] : in_flight_.forgotten()) {
    const auto ended = ended_.find(key);
    if (ended != ended_.end()) ended->second -= std::min(ended->second, count);
  }
  for (const NcclOperation& operation : in_flight_.take()) {
    if (is_told_by_sums(operation) || ended_kernels_.is_over(operation)) {
      note_call(operation);
    } else {
      append(operation);
    }
  }
  ended_.clear();
  ended_kernels_.clear();
  for (const auto& [communicator, calls] : calls_)
    missing_count_ += calls.known_count - std::min(calls.told_count, calls.known_count);
  calls_.clear();
}

/// One that has a record in flight and ended, and whose record of that was refused. Which ones did
/// is not told: later ones of a communicator wait behind the earlier ones.
bool OperationTable::is_told_by_sums(const NcclOperation& operation) {
  if ((operation.flags & kNcclAbandoned) != 0) return false;
  const auto ended = ended_.find(InFlight::key_of(operation));
  if (ended == ended_.end() || ended->second == 0) return false;
  --ended->second;
  return true;
}

void OperationTable::add(const NcclOperation& operation) {
  in_flight_.add(operation);
  ended_kernels_.add(operation);
  if ((operation.flags & kNcclInFlight) == 0) append(operation);
}

void OperationTable::note_call(const NcclOperation& operation) {
  if (operation.call >= InFlight::kMaxCalls) return;
  uint64_t& known_count = calls_[operation.communicator].known_count;
  known_count = std::max(known_count, operation.call + 1);
}

void OperationTable::append(const NcclOperation& operation) {
  NcclOperation global = operation;
  global.communicator = communicators_.global(operation.communicator);
  // Of those that nobody defined there may be as many as there are records.
  if (global.communicator != profile::LocalIds::kNone) {
    ++calls_[operation.communicator].told_count;
    note_call(operation);
  }
  global.region = regions_.global(operation.region);
  Histogram& histogram =
      histograms_[{global.communicator, global.region, log2_of(operation.bytes)}];
  ++histogram.count;
  histogram.bytes += operation.bytes;
  histogram.host_ns += operation.end_ns - std::min(operation.start_ns, operation.end_ns);
  if ((operation.flags & kNcclGpuTimed) != 0)
    nccl::add_time(operation.bytes, operation.gpu_ns, &histogram);
  keep({group_->id, level_of(global, operation.communicator), global}, operation.communicator);
}

/// How many zeros a hash of the operation begins with: of one in two at least one, of one in four
/// at least two.
uint32_t OperationTable::level_of(const NcclOperation& global, uint32_t communicator) const {
  if ((global.flags & kNcclInFlight) != 0) return kInFlightLevel;
  // What has no work has no sequence, and a graph tells that of its capture again.
  const bool has_sequence = (global.flags & (kNcclNoWork | kNcclReplayed)) == 0;
  uint64_t what = global.region;
  if (global.region == send_ || global.region == receive_) {
    const auto known = ranks_.find(communicator);
    const uint32_t own = known == ranks_.end() ? UINT32_MAX : known->second;
    const auto peer = static_cast<uint32_t>(global.peer);
    what = global.region == send_ ? pair_of(own, peer) : pair_of(peer, own);
  }
  const uint64_t which = mix(has_sequence ? global.sequence : global.call) + global.communicator;
  const int zeros = std::countl_zero(mix(mix(which) + what));
  return std::min<uint32_t>(static_cast<uint32_t>(zeros), kInFlightLevel - 1);
}

/// Of several the first one.
OperationRow* OperationTable::row_of(uint32_t communicator, uint64_t call) {
  if (call >= InFlight::kMaxCalls) return nullptr;
  const auto key = [this](uint32_t row) {
    return std::pair(row_communicators_[row - first_row_], rows_[row].operation.call);
  };
  if (rows_by_call_.empty()) {
    rows_by_call_.resize(row_communicators_.size());
    std::iota(rows_by_call_.begin(), rows_by_call_.end(), static_cast<uint32_t>(first_row_));
    std::sort(rows_by_call_.begin(), rows_by_call_.end(),
              [&](uint32_t a, uint32_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
  }
  const std::pair wanted(communicator, call);
  const auto found =
      std::lower_bound(rows_by_call_.begin(), rows_by_call_.end(), wanted,
                       [&](uint32_t row, const auto& than) { return key(row) < than; });
  return found == rows_by_call_.end() || key(*found) != wanted ? nullptr : &rows_[*found];
}

void OperationTable::add_time(const devices::TimedOperation& operation) {
  if (group_ == nullptr || operation.is_told || operation.shared_by != 1) return;
  const uint32_t communicator = communicators_.global(operation.communicator);
  const uint32_t region = regions_.global(operation.region);
  const auto histogram = histograms_.find({communicator, region, log2_of(operation.bytes)});
  if (histogram == histograms_.end()) return;
  nccl::add_time(operation.bytes, operation.gpu_ns, &histogram->second);
  OperationRow* row = row_of(operation.communicator, operation.call);
  if (row == nullptr) return;
  row->operation.gpu_begin_ns = operation.start_ns;
  row->operation.gpu_ns = operation.gpu_ns;
  row->operation.flags |= kNcclKernelTimed;
}

OperationTable::WaitKey OperationTable::wait_key_of(const OperationRow& row) const {
  const NcclOperation& one = row.operation;
  const bool is_transfer = one.region == send_ || one.region == receive_;
  return {row.group, one.communicator, one.region, one.sequence, is_transfer ? one.peer : kNoPeer};
}

void OperationTable::add_wait(const OperationWait& wait) {
  if (!is_sorted_by_wait_) {
    is_sorted_by_wait_ = true;
    for (uint32_t row = 0; row < rows_.size(); ++row) {
      if ((rows_[row].operation.flags & (kNcclGpuTimed | kNcclKernelTimed)) != 0)
        rows_by_wait_.push_back(row);
    }
    std::sort(rows_by_wait_.begin(), rows_by_wait_.end(), [this](uint32_t a, uint32_t b) {
      return wait_key_of(rows_[a]) < wait_key_of(rows_[b]);
    });
  }
  const WaitKey wanted(wait.group, wait.communicator, wait.region, wait.sequence, wait.peer);
  const auto found = std::lower_bound(
      rows_by_wait_.begin(), rows_by_wait_.end(), wanted,
      [this](uint32_t row, const WaitKey& than) { return wait_key_of(rows_[row]) < than; });
  if (found == rows_by_wait_.end() || wait_key_of(rows_[*found]) != wanted) return;
  // Ranks of one process: whose of them it is cannot be told.
  const auto next = std::next(found);
  if (next != rows_by_wait_.end() && wait_key_of(rows_[*next]) == wanted) return;
  rows_[*found].wait_ns = wait.wait_ns;
}

void OperationTable::keep(const OperationRow& row, uint32_t communicator) {
  if (row.level < thinning_ || by_level_[kInFlightLevel] == kMaxOperationRows) {
    ++left_out_count_;
    return;
  }
  ++kept_count_;
  ++by_level_[row.level];
  if (rows_.size() == rows_.capacity()) {  // there is never more than one beyond the limit
    const size_t doubled = std::max(2 * rows_.size(), kLeastRows);
    rows_.reserve(doubled < kMaxOperationRows ? doubled : kMaxOperationRows + 1);
  }
  rows_.push_back(row);
  row_communicators_.push_back(communicator);
  uint32_t needed = thinning_;
  for (size_t count = kept_count_; count > kMaxOperationRows; ++needed) count -= by_level_[needed];
  thin_out(needed);
}

/// Rows that were saved are left out, and counted, by whoever loads them.
void OperationTable::thin_out(uint32_t thinning) {
  if (thinning <= thinning_) return;
  for (; thinning_ < thinning; ++thinning_) kept_count_ -= std::exchange(by_level_[thinning_], 0);
  const auto is_out = [this](const OperationRow& row) { return row.level < thinning_; };
  const auto own = rows_.begin() + static_cast<std::ptrdiff_t>(first_row_);
  const auto earlier_count = std::count_if(rows_.begin(), own, is_out);
  size_t kept_count = 0;
  for (size_t i = 0; i < row_communicators_.size(); ++i) {
    if (!is_out(rows_[first_row_ + i])) row_communicators_[kept_count++] = row_communicators_[i];
  }
  row_communicators_.resize(kept_count);
  left_out_count_ += std::erase_if(rows_, is_out);
  first_row_ -= static_cast<size_t>(earlier_count);
  rows_by_call_.clear();
  rows_by_wait_.clear();
  is_sorted_by_wait_ = false;
}

std::string left_out_text(const OperationTable& operations) {
  if (operations.left_out_count() == 0) return {};
  const std::string count = grouped(operations.left_out_count());
  if (operations.thinning() == 0)
    return fmt::format("/nccl/operations has no room for {} operations of NCCL in flight", count);
  return fmt::format(
      "/nccl/operations has one in {} operations of NCCL ({} rows are left out); the other tables "
      "of NCCL are of all",
      uint64_t{1} << std::min(operations.thinning(), 63u), count);
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
  out->put(thinning_);
  out->put(left_out_count_);
  out->put(missing_count_);
  out->put(rows_);
  histograms_.clear();
  std::exchange(rows_, {});  // gives its memory back
  std::exchange(row_communicators_, {});
  first_row_ = 0;
  std::exchange(rows_by_call_, {});
  std::exchange(rows_by_wait_, {});
  left_out_count_ = 0;
  missing_count_ = 0;
}

Status OperationTable::load(const Model& model, StateIn* in) {
  std::vector<SavedHistogram> histograms;
  uint32_t thinning = 0;
  uint64_t left_out_count = 0;
  uint64_t missing_count = 0;
  if (!in->get(&histograms) || !in->get(&thinning) || !in->get(&left_out_count) ||
      !in->get(&missing_count) || !in->check(thinning <= kInFlightLevel))
    return in->status();
  thin_out(thinning);
  for (const SavedHistogram& saved : histograms) {
    nccl::add(saved.sums, &histograms_[{saved.communicator, saved.region, saved.log2_bytes}]);
  }
  left_out_count_ += left_out_count;
  missing_count_ += missing_count;
  in->each<OperationRow>([&](const OperationRow& row) {
    if (!in->check(row.group < model.groups.size() && row.level <= kInFlightLevel)) return false;
    keep(row, profile::LocalIds::kNone);
    return true;
  });
  return in->status();
}

}  // namespace aon::writers::nccl
