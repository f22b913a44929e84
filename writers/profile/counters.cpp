#include "writers/profile/counters.h"

#include <algorithm>

namespace aon::writers::profile {

void LocationCounters::begin(const Group& group, const Location& location) {
  metrics_.clear();
  for (uint32_t i = 0; i < kMaxRegionCounters; ++i) {
    const auto metric = group.metric_map.find(kFirstCounterMetric + i);
    if (metric == group.metric_map.end()) break;
    metrics_.push_back(metric->second);
  }
  if (!metrics_.empty()) regions_ = LocalIds(group.region_map);
  counted_.begin(group.process, location.slot);
  stack_.clear();
  active_.clear();
  rows_.clear();
  now_.assign(metrics_.size(), 0);
  last_exit_ = now_;
  has_now_ = false;
  valued_depth_ = 0;
}

void LocationCounters::add(const Event& event) {
  if (metrics_.empty()) return;
  switch (event.kind) {
    case EventKind::kCounters:
      for (uint32_t i = 0; i < std::min<size_t>(event.region, now_.size()); ++i) {
        now_[i] = event.counter(i);
      }
      has_now_ = true;
      now_is_exact_ = event.counters_are_exact();
      break;
    case EventKind::kEnter:
      enter(event);
      break;
    case EventKind::kLeave:
      leave();
      break;
    default:
      break;
  }
}

void LocationCounters::enter(const Event& event) {
  Frame frame{regions_.global(event.region),
              std::max(event.weight, 1u),
              has_now_,
              now_is_exact_,
              counted_.was_timed(event),
              now_,
              Values(now_.size(), 0)};
  if (has_now_) ++active_[frame.region];
  if (has_now_ && valued_depth_++ == 0) {
    for (size_t i = 0; i < now_.size(); ++i) {
      CounterStatistics& row = rows_[{kOutsideCalls, metrics_[i]}];
      row.count += 1;
      row.inclusive += now_[i] - last_exit_[i];
      row.exclusive = row.inclusive;
    }
  }
  has_now_ = false;
  stack_.push_back(std::move(frame));
}

void LocationCounters::leave() {
  const bool has_exit = has_now_;
  has_now_ = false;
  if (stack_.empty()) return;
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  Values delta = frame.children;  // all that is known of a frame without values
  frame.is_exact = frame.is_exact && now_is_exact_;
  if (frame.has_values) {
    --valued_depth_;
    --active_[frame.region];
    for (size_t i = 0; i < delta.size(); ++i) delta[i] = now_[i] - frame.entry[i];
    if (has_exit && frame.is_timed) add_call(frame, delta);
    if (valued_depth_ == 0) last_exit_ = now_;
  }
  if (stack_.empty()) return;
  const uint64_t weight = frame.has_values ? frame.weight : 1;
  for (size_t i = 0; i < delta.size(); ++i) stack_.back().children[i] += delta[i] * weight;
}

void LocationCounters::add_call(const Frame& frame, const Values& delta) {
  if (frame.region == kOutsideCalls) return;  // has no definition
  const bool is_outermost = active_[frame.region] == 0;
  for (size_t i = 0; i < delta.size(); ++i) {
    CounterStatistics& row = rows_[{frame.region, metrics_[i]}];
    if (!frame.is_exact) {
      row.inexact_count += frame.weight;
      continue;
    }
    row.count += frame.weight;
    if (is_outermost) row.inclusive += delta[i] * frame.weight;
    row.exclusive += (delta[i] - std::min(delta[i], frame.children[i])) * frame.weight;
  }
}

std::vector<CounterStatistics> LocationCounters::end() const {
  std::vector<CounterStatistics> rows;
  for (const auto& [key, row] : rows_) {
    rows.push_back(row);
    rows.back().region = key.first;
    rows.back().metric = key.second;
  }
  return rows;
}

}  // namespace aon::writers::profile
