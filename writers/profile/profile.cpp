#include "writers/profile/profile.h"

#include <algorithm>
#include <set>
#include <utility>

#include "writers/profile/late_begin.h"

namespace aon::writers::profile {
namespace {

constexpr uint32_t kNoRow = 0xffffffffu;

/// `counted`: calls the site counted. Every call that was timed while the site counted is among
/// them; those recorded while it was full are not, so the larger figure is the better one then.
uint64_t exact_count(uint64_t counted, const RegionStatistics& statistics, bool full_phase) {
  if (!full_phase && counted >= statistics.timed_count) return counted;
  return std::max(counted, statistics.count);
}

}  // namespace

LocationProfile::LocationProfile(const Model& model) : row_index_(model.regions.size(), kNoRow) {}

void LocationProfile::begin(const Group& group, const Location& location) {
  for (const Row& row : rows_) row_index_[row.statistics.region] = kNoRow;
  rows_.clear();
  stack_.clear();
  if (group_ != &group) regions_ = LocalIds(group.region_map);
  group_ = &group;
  slot_ = location.slot;
  first_ns_ = UINT64_MAX;
  last_ns_ = 0;
  is_cut_ = false;
  counted_.begin(group.process, slot_);
}

uint32_t LocationProfile::row_of(uint32_t global_region) {
  uint32_t& index = row_index_[global_region];
  if (index == kNoRow) {
    index = static_cast<uint32_t>(rows_.size());
    rows_.emplace_back().statistics.region = global_region;
  }
  return index;
}

void LocationProfile::add(const Event& event) {
  first_ns_ = std::min(first_ns_, event.time_ns);
  last_ns_ = event.time_ns;
  switch (event.kind) {
    case EventKind::kEnter:
      enter(event);
      break;
    case EventKind::kLeave:
      leave(event);
      break;
    case EventKind::kCut:
      is_cut_ = true;
      break;
    case EventKind::kMark:
      if (event.value_type() == ValueType::kRangeEnd) add_range(event);
      break;
    case EventKind::kSend:
    case EventKind::kSendRequest:
    case EventKind::kReceive:
    case EventKind::kReceiveComplete:
    case EventKind::kForeignMessage:
    case EventKind::kIoComplete:
      add_bytes(event.bytes);
      break;
    case EventKind::kCollectiveEnd:
    case EventKind::kCollectiveComplete:
    case EventKind::kRmaTransfer:
      add_bytes(event.bytes + event.bytes_received);
      break;
    default:
      break;
  }
}

void LocationProfile::enter(const Event& event) {
  const uint32_t region = regions_.global(event.region);
  if (region >= row_index_.size()) return;
  const uint32_t row = row_of(region);
  ++rows_[row].active_calls;
  stack_.push_back(
      {row, std::max(event.weight, 1u), begin_ns(event), 0, counted_.was_timed(event)});
}

/// A range overlaps other regions, and so has no time of its own.
void LocationProfile::add_range(const Event& end) {
  const uint32_t region = regions_.global(end.region);
  if (region >= row_index_.size()) return;
  RegionStatistics& s = rows_[row_of(region)].statistics;
  s.min_ns = s.timed_count == 0 ? end.bytes : std::min(s.min_ns, end.bytes);
  s.max_ns = std::max(s.max_ns, end.bytes);
  s.count += 1;
  s.timed_count += 1;
  s.inclusive_ns += end.bytes;
  s.histogram[histogram_bucket(end.bytes)] += 1;
}

void LocationProfile::leave(const Event& event) {
  const bool is_timed = !std::exchange(is_cut_, false);
  const uint32_t region = regions_.global(event.region);
  if (region >= row_index_.size() || row_index_[region] == kNoRow) return;
  const uint32_t row = row_index_[region];
  if (rows_[row].active_calls == 0) return;
  while (stack_.back().row != row) close_top(event.time_ns);
  close_top(event.time_ns, is_timed);
}

/// One that is not timed counts; what is known of its time is not that of the region around it.
void LocationProfile::close_top(uint64_t time_ns, bool is_timed) {
  const Frame frame = stack_.back();
  stack_.pop_back();
  Row& row = rows_[frame.row];
  RegionStatistics& s = row.statistics;
  const uint64_t duration_ns = time_ns - frame.enter_ns;
  const uint64_t own_ns = duration_ns - std::min(duration_ns, frame.children_ns);
  const uint64_t weighed_ns = row.time.weigh(first_ns_, frame.enter_ns, time_ns, frame.weight);
  s.count += frame.weight;
  --row.active_calls;
  if (!stack_.empty()) stack_.back().children_ns += weighed_ns;
  if (!is_timed || !frame.is_timed) return;
  s.min_ns = s.timed_count == 0 ? duration_ns : std::min(s.min_ns, duration_ns);
  s.max_ns = std::max(s.max_ns, duration_ns);
  s.timed_count += 1;
  s.exclusive_ns += own_ns + std::min(own_ns * (frame.weight - 1), weighed_ns - duration_ns);
  s.histogram[histogram_bucket(duration_ns)] += frame.weight;
  if (row.active_calls == 0) s.inclusive_ns += weighed_ns;
}

void LocationProfile::add_bytes(uint64_t bytes) {
  if (!stack_.empty()) rows_[stack_.back().row].statistics.bytes += bytes;
}

void LocationProfile::put_exact_counts() {
  if (group_->process == nullptr) return;
  const spool::Process& process = *group_->process;
  for (auto it = process.counts.lower_bound({slot_, 0});
       it != process.counts.end() && it->first.first == slot_; ++it) {
    const auto& [key, counted] = *it;
    const uint32_t region = regions_.global(key.second);
    if (region >= row_index_.size() || counted == 0) continue;
    RegionStatistics& statistics = rows_[row_of(region)].statistics;
    const bool full_phase = CountedSites::was_full(process, key.second);
    statistics.count = exact_count(counted, statistics, full_phase);
  }
}

std::span<const RegionStatistics> LocationProfile::end() {
  while (!stack_.empty()) close_top(last_ns_);
  put_exact_counts();
  result_.clear();
  for (const Row& row : rows_) result_.push_back(row.statistics);
  std::sort(result_.begin(), result_.end(),
            [](const auto& a, const auto& b) { return a.region < b.region; });
  return result_;
}

std::vector<UncoveredCount> uncovered_counts(const Model& model) {
  std::set<std::pair<uint32_t, uint32_t>> covered;  // group, slot
  for (const Location& location : model.locations) covered.insert({location.group, location.slot});
  std::vector<UncoveredCount> counts;
  for (const Group& group : model.groups) {
    if (group.process == nullptr) continue;
    for (const auto& [key, counted] : group.process->counts) {
      const auto region = group.region_map.find(key.second);
      if (counted == 0 || region == group.region_map.end()) continue;
      if (covered.count({group.id, key.first}) != 0) continue;
      RegionStatistics statistics;
      statistics.region = region->second;
      statistics.count = counted;
      counts.push_back({&group, key.first, statistics});
    }
  }
  return counts;
}

}  // namespace aon::writers::profile
