#include "writers/steps/tracker.h"

#include <algorithm>
#include <utility>

namespace aon::writers::steps {
namespace {
constexpr size_t kMaxSeen = 65536;
}

LoopTracker::LoopTracker(const Candidate& pattern, const LoopTime& time, Sink sink)
    : pattern_(pattern),
      time_(time),
      sink_(std::move(sink)),
      lead_(pattern.lead_calls),
      recent_(lead_) {}

void LoopTracker::add(uint64_t token, uint64_t gap_ns, const Cut& at) {
  look_for_tail(at);
  const bool is_in_time = at.time_ns >= time_.earliest_ns && at.time_ns <= time_.latest_ns;
  const bool is_late = is_open_ && calls_ > kGapFactor * std::max<uint64_t>(pattern_.calls, 1);
  if (is_late) close();
  const bool is_early =
      is_open_ && pattern_.least_gap_ns != 0 && !is_next_anchor(calls_, pattern_.calls);
  const bool is_anchor =
      token == pattern_.token && gap_ns >= pattern_.least_gap_ns && is_in_time && !is_early;
  if (is_anchor && is_open_) {
    const Cut next = start_of_iteration(at);
    emit(begin_, next);
    begin_ = next;
  } else if (is_anchor) {
    open(at);
  }
  if (is_anchor) {
    calls_ = 0;
    followed_ = 0;
    is_following_ = true;
    has_tail_ = false;
    ++step_;
    token_set_ = 0;
  }
  if (is_open_) {
    ++calls_;
    follow(token);
    note(token);
  }
  if (lead_ != 0) recent_[call_count_ % lead_] = {token, at};
  ++call_count_;
}

void LoopTracker::finish(const Cut& at) {
  look_for_tail(at);
  close();
}

void LoopTracker::interrupt() {
  close();
  call_count_ = 0;  // nor does one begin before
}

void LoopTracker::look_for_tail(const Cut& at) {
  if (!is_open_ || !is_following_ || !is_complete() || has_tail_) return;
  has_tail_ = at.time_ns <= time_.next_ns;
  is_following_ = has_tail_;
  tail_ = at;
}

/// The first iteration begins before its anchor as far as the calls there are the pattern's.
void LoopTracker::open(const Cut& at) {
  is_open_ = true;
  run_count_ = 0;
  begin_ = at;
  const Body& body = pattern_.body;
  for (size_t back = 1; back <= lead_ && back <= call_count_; ++back) {
    const Seen& seen = recent_[(call_count_ - back) % lead_];
    if (seen.token != body[body.size() - back] || seen.at.time_ns < time_.previous_ns) return;
    begin_ = seen.at;
  }
}

/// At its anchor where it would begin before the one that runs: that one was cut short, and begins
/// at its own anchor.
Cut LoopTracker::start_of_iteration(const Cut& anchor) const {
  const size_t back = std::min<size_t>(lead_, call_count_);
  if (back == 0) return anchor;
  const Cut& start = recent_[(call_count_ - back) % lead_].at;
  return start.time_ns > begin_.time_ns ? start : anchor;
}

void LoopTracker::follow(uint64_t token) {
  if (!is_following_ || followed_ >= body_size()) return;
  if (pattern_.body[followed_] == token) {
    ++followed_;
  } else if (!is_complete()) {
    is_following_ = false;
  }
}

void LoopTracker::note(uint64_t token) {
  const auto found = seen_.find(token);
  if (found != seen_.end()) {
    if (std::exchange(found->second, step_) == step_) return;
  } else {
    if (seen_.size() < kMaxSeen) seen_[token] = step_;
  }
  token_set_ += in_set(token);
}

void LoopTracker::emit(const Cut& begin, const Cut& end) {
  const bool is_matched = token_set_ == pattern_.token_set && 2 * calls_ >= pattern_.calls &&
                          calls_ <= 2 * pattern_.calls;
  const CutStep step{begin, end, is_matched};
  if (++run_count_ > kLeastSteps) {
    sink_(step);
    return;
  }
  waiting_.push_back(step);
  if (run_count_ < kLeastSteps) return;
  for (const CutStep& one : waiting_) sink_(one);
  waiting_.clear();
}

void LoopTracker::close() {
  if (is_open_ && has_tail_) {
    // As complete as the others, though what follows is not of it.
    token_set_ = pattern_.token_set;
    calls_ = pattern_.calls;
    emit(begin_, tail_);
  }
  waiting_.clear();
  is_open_ = false;
  run_count_ = 0;
}

}  // namespace aon::writers::steps
