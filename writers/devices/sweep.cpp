#include "writers/devices/sweep.h"

#include <algorithm>

namespace aon::writers::devices {

void Sweep::spread(uint64_t from_ns, uint64_t to_ns,
                   const std::function<void(DeviceTimes*, uint64_t)>& add) {
  add(&total_, to_ns - from_ns);
  while (first_window_ < windows_.size() && windows_[first_window_].end_ns <= from_ns)
    ++first_window_;
  for (size_t i = first_window_; i < windows_.size() && windows_[i].begin_ns < to_ns; ++i) {
    Window& window = windows_[i];
    const uint64_t begin_ns = std::max(from_ns, window.begin_ns);
    const uint64_t end_ns = std::min(to_ns, window.end_ns);
    if (begin_ns < end_ns) add(&window.times, end_ns - begin_ns);
  }
}

void Sweep::account_work(uint64_t from_ns, uint64_t to_ns) {
  if (from_ns >= to_ns) return;
  const bool has_compute = running_[static_cast<size_t>(WorkClass::kCompute)] != 0;
  const bool has_copy = running_[static_cast<size_t>(WorkClass::kCopy)] != 0;
  const bool has_communication = running_[static_cast<size_t>(WorkClass::kCommunication)] != 0;
  spread(from_ns, to_ns, [&](DeviceTimes* times, uint64_t ns) {
    times->busy_ns += ns;
    for (size_t i = 0; i < kWorkClassCount; ++i) times->class_ns[i] += running_[i] != 0 ? ns : 0;
    if (has_communication) (has_compute ? times->overlap_ns : times->exposed_ns) += ns;
    if (has_copy && !has_compute && !has_communication) times->only_copying_ns += ns;
  });
}

void Sweep::account_idle(uint64_t from_ns, uint64_t to_ns, IdleReason reason) {
  if (from_ns >= to_ns) return;
  const auto index = static_cast<size_t>(reason);
  spread(from_ns, to_ns, [&](DeviceTimes* times, uint64_t ns) { times->idle_ns[index] += ns; });
  ++idle_[index].count;
  idle_[index].max_ns = std::max(idle_[index].max_ns, to_ns - from_ns);
}

/// Accounts what runs, up to `to_ns` or until nothing does.
void Sweep::advance(uint64_t to_ns) {
  while (!ends_.empty()) {
    const End next = ends_.top();
    const uint64_t until_ns = std::min(next.time_ns, to_ns);
    account_work(now_ns_, until_ns);
    now_ns_ = std::max(now_ns_, until_ns);
    if (next.time_ns > to_ns) return;
    --running_[static_cast<size_t>(next.work)];
    ends_.pop();
  }
}

/// Whether in the gap before `to_ns` and the work of `launch` there may have been other work.
bool Sweep::is_blind(uint64_t to_ns, const Launch& launch) {
  while (!blind_.empty() && blind_.front().end_ns <= now_ns_) blind_ = blind_.subspan(1);
  if (!blind_.empty() && blind_.front().begin_ns < to_ns) return true;
  if (launch.end_ns == 0 || last_launch_.end_ns == 0) return false;
  const auto next = std::upper_bound(missing_launches_ns_.begin(), missing_launches_ns_.end(),
                                     last_launch_.start_ns);
  return next != missing_launches_ns_.end() && *next < launch.start_ns;
}

void Sweep::account_gap(uint64_t to_ns, const Launch& launch) {
  if (is_blind(to_ns, launch)) {
    account_idle(now_ns_, to_ns, IdleReason::kUnrecorded);
    return;
  }
  if (launch.end_ns == 0) {
    account_idle(now_ns_, to_ns, IdleReason::kUnknown);
    return;
  }
  const uint64_t called_ns = std::clamp(launch.start_ns, now_ns_, to_ns);
  const bool is_of_last = launch.start_ns == last_launch_.start_ns;
  const uint64_t arrived_ns = launch.end_ns + (is_of_last ? 0 : kArrivalNs);
  const uint64_t launched_ns = std::clamp(arrived_ns, called_ns, to_ns);
  account_idle(now_ns_, called_ns, IdleReason::kHostWait);
  account_idle(called_ns, launched_ns, IdleReason::kLaunch);
  account_idle(launched_ns, to_ns, IdleReason::kStarved);
}

void Sweep::add(const Interval& interval, const Launch& launch) {
  advance(interval.start_ns);
  if (!has_begun_) {
    has_begun_ = true;
    first_ns_ = now_ns_ = interval.start_ns;
  } else if (ends_.empty() && now_ns_ < interval.start_ns) {
    account_gap(interval.start_ns, launch);
    now_ns_ = interval.start_ns;
  }
  last_launch_ = launch;
  if (ends_.size() == kMaxRunning) {  // no device does as much at a time: damage
    --running_[static_cast<size_t>(ends_.top().work)];
    ends_.pop();
  }
  ++running_[static_cast<size_t>(interval.work)];
  ends_.push({std::max(interval.end_ns, interval.start_ns), interval.work});
}

void Sweep::finish() {
  advance(UINT64_MAX);
  total_.span_ns = now_ns_ - first_ns_;
}

}  // namespace aon::writers::devices
