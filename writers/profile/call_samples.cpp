#include "writers/profile/call_samples.h"

namespace aon::writers::profile {

void CallSamples::add(const Event& event) {
  if (event.kind != EventKind::kCallSample) return;
  const auto path = group_->call_path_map.find(event.region);
  if (path == group_->call_path_map.end() || path->second >= model_->call_paths.size()) {
    ++unknown_count_;
    return;
  }
  Sum& sum = sums_[{group_->id, event.peer, path->second}];
  ++sum.count;
  sum.period += event.bytes;
}

std::vector<CallSampleRow> CallSamples::rows() const {
  std::vector<CallSampleRow> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    const auto& [group, tid, path] = key;
    rows.push_back({group, tid, path, sum.count, sum.period});
  }
  return rows;
}

std::vector<CallPathCount> CallSamples::counts() const {
  const std::vector<GlobalCallPath>& paths = model_->call_paths;
  std::vector<CallPathCount> counts(paths.size());
  for (const auto& [key, sum] : sums_) {
    counts[std::get<2>(key)].self += sum.count;
    counts[std::get<2>(key)].self_period += sum.period;
  }
  for (size_t i = paths.size(); i > 0; --i) {  // children stand behind their parents
    CallPathCount& count = counts[i - 1];
    count.total += count.self;
    count.total_period += count.self_period;
    if (const auto& parent = paths[i - 1].parent) {
      counts[*parent].total += count.total;
      counts[*parent].total_period += count.total_period;
    }
  }
  return counts;
}

void CallSamples::save(StateOut* out) {
  out->put(rows());
  out->put(unknown_count_);
  sums_.clear();
  unknown_count_ = 0;
}

Status CallSamples::load(StateIn* in) {
  std::vector<CallSampleRow> rows;
  uint64_t unknown_count = 0;
  if (!in->get(&rows) || !in->get(&unknown_count)) return in->status();
  for (const CallSampleRow& row : rows) {
    if (row.group >= model_->groups.size() || model_->groups[row.group].process == nullptr)
      return unknown_id("process");
    if (row.call_path >= model_->call_paths.size()) return unknown_id("call path");
    Sum& sum = sums_[{row.group, row.tid, row.call_path}];
    sum.count += row.count;
    sum.period += row.period;
  }
  unknown_count_ += unknown_count;
  return {};
}

}  // namespace aon::writers::profile
