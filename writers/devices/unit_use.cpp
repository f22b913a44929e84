#include "writers/devices/unit_use.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "writers/devices/device_names.h"

namespace aon::writers::devices {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

// NVIDIA's latency_bound_threshold and balanced_threshold: what is below has no bound, and two uses
// so near to each other are balanced.
constexpr float kBusy = 0.6F;
constexpr float kNear = 0.1F;
// Ours.
constexpr float kIdle = 0.05F;
constexpr float kHalf = 0.5F;

bool is_known(float value) { return !std::isnan(value); }

float or_zero(float value) { return is_known(value) ? value : 0; }

float larger(float a, float b) { return is_known(a) ? std::max(a, b) : b; }

}  // namespace

UnitClass class_of(const UnitSample& sample) {
  // A sample has idle time in it; the rule is about kernels.
  const float active = is_known(sample.graphics) ? sample.graphics : larger(sample.sm, 0);
  if (active < kIdle) return UnitClass::kIdle;
  const auto while_active = [&](float value) { return std::min(value / active, 1.0F); };
  const float compute = while_active(sample.compute);
  const float memory = while_active(sample.memory);
  if (compute < kBusy && memory < kBusy) {
    const bool is_small = is_known(sample.sm) && while_active(sample.sm) < kHalf;
    return is_small ? UnitClass::kSmallGrids : UnitClass::kLatency;
  }
  if (compute >= kBusy && memory >= kBusy && std::abs(compute - memory) <= kNear)
    return UnitClass::kBalanced;
  return compute > memory ? UnitClass::kCompute : UnitClass::kMemory;
}

void UnitTimeline::make_room(uint64_t end_ns) {
  while ((end_ns - 1) / width_ns_ - first_ >= max_buckets_) {
    const uint64_t odd = first_ & 1;
    std::vector<Bucket> wider((buckets_.size() + odd + 1) / 2);
    for (size_t i = 0; i < buckets_.size(); ++i) {
      Bucket& to = wider[(i + odd) / 2];
      const Bucket& from = buckets_[i];
      to.counted_ns += from.counted_ns;
      to.sm += from.sm;
      to.occupancy += from.occupancy;
      to.occupancy_ns += from.occupancy_ns;
      to.compute += from.compute;
      to.memory += from.memory;
      for (size_t k = 0; k < kUnitClassCount; ++k) to.class_ns[k] += from.class_ns[k];
    }
    buckets_ = std::move(wider);
    first_ /= 2;
    width_ns_ *= 2;
  }
  const uint64_t count = (end_ns - 1) / width_ns_ - first_ + 1;
  if (count > buckets_.size()) buckets_.resize(count);
}

void UnitTimeline::add(uint64_t begin_ns, uint64_t end_ns, const UnitSample& sample) {
  if (begin_ns >= end_ns) return;
  if (buckets_.empty()) first_ = begin_ns / width_ns_;
  if (begin_ns / width_ns_ < first_) return;
  make_room(end_ns);
  const auto what = static_cast<size_t>(class_of(sample));
  for (uint64_t at = begin_ns / width_ns_; at * width_ns_ < end_ns; ++at) {
    const uint64_t from_ns = std::max(begin_ns, at * width_ns_);
    const auto ns = static_cast<float>(std::min(end_ns, (at + 1) * width_ns_) - from_ns);
    Bucket& bucket = buckets_[at - first_];
    bucket.counted_ns += ns;
    bucket.sm += or_zero(sample.sm) * ns;
    bucket.occupancy += or_zero(sample.occupancy) * ns;
    bucket.occupancy_ns += is_known(sample.occupancy) ? ns : 0.0F;
    bucket.compute += sample.compute * ns;
    bucket.memory += sample.memory * ns;
    bucket.class_ns[what] += ns;
  }
  ++sample_count_;
  sampled_ns_ += end_ns - begin_ns;
}

UnitUse UnitTimeline::use_of(uint64_t begin_ns, uint64_t end_ns) const {
  UnitUse use;
  if (buckets_.empty() || end_ns <= begin_ns) return use;
  if (end_ns - begin_ns < std::max(width_ns_, sampled_ns_ / sample_count_)) return use;
  double counted_ns = 0, sm = 0, occupancy = 0, occupancy_ns = 0, compute = 0, memory = 0;
  double class_ns[kUnitClassCount] = {};
  const uint64_t last = std::min(first_ + buckets_.size(), (end_ns - 1) / width_ns_ + 1);
  for (uint64_t at = std::max(first_, begin_ns / width_ns_); at < last; ++at) {
    const Bucket& bucket = buckets_[at - first_];
    const uint64_t from_ns = std::max(begin_ns, at * width_ns_);
    const uint64_t to_ns = std::min(end_ns, (at + 1) * width_ns_);
    const double share = static_cast<double>(to_ns - from_ns) / static_cast<double>(width_ns_);
    counted_ns += share * bucket.counted_ns;
    sm += share * bucket.sm;
    occupancy += share * bucket.occupancy;
    occupancy_ns += share * bucket.occupancy_ns;
    compute += share * bucket.compute;
    memory += share * bucket.memory;
    for (size_t k = 0; k < kUnitClassCount; ++k) class_ns[k] += share * bucket.class_ns[k];
  }
  use.counted_ns = static_cast<uint64_t>(counted_ns);
  if (use.counted_ns == 0) return use;
  use.sm_active = static_cast<float>(sm / counted_ns);
  use.occupancy = occupancy_ns != 0 ? static_cast<float>(occupancy / occupancy_ns) : kUnknown;
  use.compute = static_cast<float>(compute / counted_ns);
  use.memory = static_cast<float>(memory / counted_ns);
  for (size_t k = 0; k < kUnitClassCount; ++k) use.class_ns[k] = static_cast<uint64_t>(class_ns[k]);
  return use;
}

void UnitTimeline::save(StateOut* out) const {
  out->put(width_ns_);
  out->put(first_);
  out->put(buckets_);
  out->put(sample_count_);
  out->put(sampled_ns_);
}

bool UnitTimeline::load(StateIn* in) {
  return in->get(&width_ns_) && in->get(&first_) && in->get(&buckets_) && in->get(&sample_count_) &&
         in->get(&sampled_ns_) &&
         in->check(width_ns_ != 0 && buckets_.size() <= kMaxBuckets &&
                   (buckets_.empty() || sample_count_ != 0) && first_ < UINT64_MAX / width_ns_);
}

std::optional<std::pair<UnitUses::Owner, UnitUses::Quantity>> UnitUses::told_by(
    const GlobalMetric& metric) {
  static constexpr std::tuple<const char*, Source, Quantity> kMetrics[] = {
      {"gpm/graphics-active", Source::kGpm, Quantity::kGraphics},
      {"gpm/sm-active", Source::kGpm, Quantity::kSm},
      {"gpm/sm-occupancy", Source::kGpm, Quantity::kOccupancy},
      {"gpm/tensor-active", Source::kGpm, Quantity::kCompute},
      {"gpm/integer-active", Source::kGpm, Quantity::kCompute},
      {"gpm/fp64-active", Source::kGpm, Quantity::kCompute},
      {"gpm/fp32-active", Source::kGpm, Quantity::kCompute},
      {"gpm/fp16-active", Source::kGpm, Quantity::kCompute},
      {"gpm/dram-active", Source::kGpm, Quantity::kMemory},
      {"counters/graphics-active", Source::kCounters, Quantity::kGraphics},
      {"counters/sm-active", Source::kCounters, Quantity::kSm},
      {"counters/sm-occupancy", Source::kCounters, Quantity::kOccupancy},
      {"counters/tensor-active", Source::kCounters, Quantity::kCompute},
      {"counters/issue-active", Source::kCounters, Quantity::kCompute},
      {"counters/fp64-active", Source::kCounters, Quantity::kCompute},
      {"counters/fma-active", Source::kCounters, Quantity::kCompute},
      {"counters/alu-active", Source::kCounters, Quantity::kCompute},
      {"counters/dram-read-active", Source::kCounters, Quantity::kMemory},
      {"counters/dram-write-active", Source::kCounters, Quantity::kMemory},
  };
  const std::string name = name_in_provider(metric);
  const std::string folder = folder_of(name);
  if (folder.empty()) return std::nullopt;
  const std::string in_device = name.substr(name.find('/') + 1);
  for (const auto& [known, source, quantity] : kMetrics) {
    if (in_device == known) return std::pair(Owner{digits_of(uuid_of(folder)), source}, quantity);
  }
  return std::nullopt;
}

void UnitUses::begin(const Model& model) {
  model_ = &model;
  std::map<Owner, uint32_t> numbers;
  for (const GlobalMetric& metric : model.metrics) {
    const auto told = told_by(metric);
    auto& known = metrics_.emplace_back();
    if (!told) continue;
    const auto number = static_cast<uint32_t>(owners_.size());
    const auto [owner, is_new] = numbers.try_emplace(told->first, number);
    if (is_new) owners_.push_back(told->first);
    known = Metric{owner->second, told->second};
  }
  rows_.resize(owners_.size());
  left_counts_.resize(model.job->nodes.size());
  homes_ = spool::HomeNodes(*model.job);
  for (const Group& group : model.groups) note_devices(group);
  const size_t share = kMaxBucketsOfAll / std::max<size_t>(most_timelines(), 1);
  max_buckets_ = std::clamp(share, kLeastBuckets, UnitTimeline::kMaxBuckets);
}

void UnitUses::note_devices(const Group& group) {
  if (group.process == nullptr || group.process->device_streams.empty()) return;
  const uint32_t home = homes_.of(group.node);
  ++left_counts_[home];
  for (const auto& [ordinal, device] : group.process->devices)
    used_.emplace(home, digits_of(device.definition.uuid));
}

/// At a time: those of a node are there from its first process to its last one. Where ranks go
/// round the nodes they are those of all.
size_t UnitUses::most_timelines() const {
  const bool has_counters = std::any_of(owners_.begin(), owners_.end(), [](const Owner& owner) {
    return owner.source == Source::kCounters;
  });
  const size_t group_count = model_->groups.size();
  std::vector<size_t> device_counts(left_counts_.size());
  for (const auto& [node, digits] : used_) ++device_counts[node];
  std::vector<size_t> begins(group_count + 1);
  std::vector<size_t> ends(group_count + 1);
  std::vector<size_t> lasts(left_counts_.size(), group_count);
  std::vector<bool> has_begun(left_counts_.size());
  for (size_t i = 0; i < group_count; ++i) {
    if (model_->groups[i].process == nullptr) continue;
    const uint32_t node = homes_.of(model_->groups[i].node);
    if (!has_begun[node]) begins[i] += device_counts[node];
    has_begun[node] = true;
    lasts[node] = i;
  }
  for (size_t node = 0; node < lasts.size(); ++node) ends[lasts[node]] += device_counts[node];
  size_t now = 0;
  size_t most = 0;
  for (size_t i = 0; i < group_count; ++i) {
    now += begins[i];
    most = std::max(most, now);
    now -= ends[i];
  }
  return has_counters ? 2 * most : most;
}

void UnitUses::begin_location(uint32_t node) { node_ = node; }

/// Null: no process has the device. Those of others are counted as well, on nodes that a job
/// shares or does not use the devices of.
UnitTimeline* UnitUses::timeline_of(const Owner& owner) {
  if (used_.count({node_, owner.digits}) == 0) return nullptr;
  const Key key{node_, owner.digits, owner.source};
  const auto [timeline, is_new] = timelines_.try_emplace(key, max_buckets_);
  if (is_new) unsaved_.push_back(key);
  return &timeline->second;
}

/// A sample is of the time since the one before it, if that is not longer than they can be: there
/// may be times without any. GPM rests up to 10 s for a small --budget (plugins/nvml/gpus.h).
void UnitUses::end_row(const Owner& owner, Row* row) {
  constexpr uint64_t kLongestGpmNs = 12'000'000'000;
  constexpr uint64_t kLongestCountersNs = 15'000'000;
  const uint64_t longest_ns = owner.source == Source::kGpm ? kLongestGpmNs : kLongestCountersNs;
  const bool has_both = is_known(row->sample.compute) && is_known(row->sample.memory);
  if (row->previous_ns != 0 && has_both) {
    if (row->timeline == nullptr) row->timeline = timeline_of(owner);
    const uint64_t length_ns = std::min(row->time_ns - row->previous_ns, longest_ns);
    if (row->timeline != nullptr)
      row->timeline->add(row->time_ns - length_ns, row->time_ns, row->sample);
  }
  row->previous_ns = row->time_ns;
}

void UnitUses::add(const Event& sample) {
  if (sample.region >= metrics_.size() || !metrics_[sample.region]) return;
  const Metric& metric = *metrics_[sample.region];
  constexpr UnitSample kNothing = {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown};
  std::optional<Row>& known = rows_[metric.owner];
  const bool is_new = !known;
  if (is_new) {
    known.emplace();
    told_owners_.push_back(metric.owner);
  }
  Row& row = *known;
  if (!is_new && row.time_ns != sample.time_ns) end_row(owners_[metric.owner], &row);
  if (is_new || row.time_ns != sample.time_ns) row.sample = kNothing;
  row.time_ns = sample.time_ns;
  const auto value = static_cast<float>(std::bit_cast<double>(sample.bytes));
  switch (metric.quantity) {
    case Quantity::kGraphics:
      row.sample.graphics = value;
      break;
    case Quantity::kSm:
      row.sample.sm = value;
      break;
    case Quantity::kOccupancy:
      row.sample.occupancy = value;
      break;
    case Quantity::kCompute:
      row.sample.compute = larger(row.sample.compute, value);
      break;
    case Quantity::kMemory:  // reading and writing share it
      row.sample.memory = or_zero(row.sample.memory) + value;
      break;
  }
}

void UnitUses::end_location() {
  for (const uint32_t owner : told_owners_) {
    end_row(owners_[owner], &*rows_[owner]);
    rows_[owner].reset();
  }
  told_owners_.clear();
}

UnitUses::Device UnitUses::find(const Group& group, uint32_t device) const {
  Device found;
  if (group.process == nullptr) return found;  // damage
  const auto known = group.process->devices.find(device);
  if (known == group.process->devices.end()) return found;
  const std::string digits = digits_of(known->second.definition.uuid);
  const auto timeline = [&](Source source) {
    const auto one = timelines_.find({homes_.of(group.node), digits, source});
    return one != timelines_.end() ? &one->second : nullptr;
  };
  found.fine_ = timeline(Source::kCounters);
  found.coarse_ = timeline(Source::kGpm);
  return found;
}

UnitUse UnitUses::Device::use_of(uint64_t begin_ns, uint64_t end_ns) const {
  for (const UnitTimeline* timeline : {fine_, coarse_}) {
    if (timeline == nullptr) continue;
    const UnitUse use = timeline->use_of(begin_ns, end_ns);
    if (use.counted_ns >= (end_ns - begin_ns) / 2 && use.counted_ns != 0) return use;
  }
  return {};
}

void UnitUses::pass(const Group& group) {
  const uint32_t node = group.node;  // of those with a file of their own nobody waits: till the end
  if (left_counts_[node] == 0 || --left_counts_[node] != 0) return;
  timelines_.erase(timelines_.lower_bound({node, "", Source::kGpm}),
                   timelines_.lower_bound({node + 1, "", Source::kGpm}));
}

void UnitUses::save(StateOut* out) {
  std::erase_if(unsaved_, [&](const Key& key) { return timelines_.count(key) == 0; });
  out->put(uint64_t{unsaved_.size()});
  for (const Key& key : unsaved_) {
    out->put(std::get<0>(key));
    out->put(std::get<1>(key));
    out->put(std::get<2>(key));
    timelines_.at(key).save(out);
  }
  unsaved_.clear();
}

Status UnitUses::load(StateIn* in) {
  uint64_t count = 0;
  if (!in->get(&count)) return in->status();
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t node = 0;
    std::string digits;
    Source source{};
    UnitTimeline timeline;
    if (!in->get(&node) || !in->get(&digits) || !in->get(&source) || !timeline.load(in))
      return in->status();
    if (!in->check(node < left_counts_.size() && source <= Source::kCounters)) return in->status();
    timelines_[{node, digits, source}] = std::move(timeline);
  }
  return {};
}

}  // namespace aon::writers::devices
