#include "cupti/watchdog.h"

#include <stdio.h>

namespace aon::cupti {
namespace {

constexpr double kDegradeFactor = 1.2;
constexpr double kRecoverFactor = 0.5;
constexpr int kSkip = 2;  ///< steps, from full to windows

double cost_of(const Usage& usage) {
  return static_cast<double>(usage.records_ns + usage.overhead_ns + usage.worker_cpu_ns +
                             usage.drain_cpu_ns);
}

/// What is judged.
double spareable_of(const Usage& usage) {
  return cost_of(usage) - static_cast<double>(usage.kept_ns);
}

/// The time of the threads that launch.
double base_of(const Usage& usage) {
  return static_cast<double>(usage.elapsed_ns) *
         (usage.launch_threads > 1 ? usage.launch_threads : 1);
}

}  // namespace

bool Watchdog::change(int by) {
  detail_ = static_cast<Detail>(static_cast<int>(detail_) + by);
  if (by > 0 && has_recovered_ && wait_ns_ < kMaxWaitNs) {
    wait_ns_ = 2 * wait_ns_ < kMaxWaitNs ? 2 * wait_ns_ : kMaxWaitNs;
  }
  has_recovered_ = by < 0;
  if (by == kSkip || detail_ < Detail::kWindows) has_skipped_ = by == kSkip;
  was_dear_ = false;
  quiet_ns_ = 0;
  begin_period();
  return true;
}

/// True: it was quiet for long enough.
bool Watchdog::note_quiet(bool is_quiet, uint64_t elapsed_ns) {
  quiet_ns_ = is_quiet ? quiet_ns_ + elapsed_ns : 0;
  return quiet_ns_ >= wait_ns_;
}

/// Everything is recorded all the time: one interval that is dear may be chance.
bool Watchdog::judge_full(const Usage& usage) {
  const bool is_dear = percent_ > kDegradeFactor * budget_;
  if (is_dear && was_dear_ && detail_ < least_) {
    const bool may_skip = detail_ == Detail::kFull && least_ >= Detail::kWindows;
    return change(may_skip && !is_enough(usage) ? kSkip : 1);
  }
  was_dear_ = is_dear;
  return false;
}

/// Without calls the cost would be within the budget.
bool Watchdog::is_enough(const Usage& usage) const {
  const double rest_ns = spareable_of(usage) - static_cast<double>(usage.spared_ns);
  return 100 * rest_ns <= budget_ * base_of(usage);
}

void Watchdog::begin_period() {
  period_cost_ns_ = 0;
  period_base_ns_ = 0;
  period_ns_ = 0;
  has_window_ = false;
  is_overdue_ = false;
}

/// A period is judged as a whole; to go back, what the window would cost without its rests. Of one
/// without a window, as the first one may be, there is nothing to judge.
bool Watchdog::judge_windows(const Usage& usage, bool was_recording, bool is_end) {
  if (was_recording) {
    window_percent_ = percent_;
    has_window_ = true;
    is_overdue_ = false;
  }
  period_cost_ns_ += spareable_of(usage);
  period_base_ns_ += base_of(usage);
  if (!is_end) return false;
  const bool had_window = has_window_;
  const double average = period_base_ns_ > 0 ? 100 * period_cost_ns_ / period_base_ns_ : 0;
  const uint64_t elapsed_ns = period_ns_;
  begin_period();
  is_overdue_ = !had_window;
  if (!had_window) return false;
  const bool is_dear = average > kDegradeFactor * budget_;
  if (is_dear && was_dear_) return change(1);
  was_dear_ = is_dear;
  return note_quiet(window_percent_ < kRecoverFactor * budget_, elapsed_ns) &&
         change(has_skipped_ ? -kSkip : -1);
}

bool Watchdog::step(const Usage& usage) {
  const bool was_recording = is_recording();
  const bool is_end = usage.next_interval <= interval_;  // of a period; some may have been missed
  interval_ = usage.next_interval;
  has_rested_ |= !was_recording;
  const double base_ns = base_of(usage);
  percent_ = base_ns > 0 ? 100 * spareable_of(usage) / base_ns : 0;
  cost_ns_ += cost_of(usage);
  base_ns_ += base_ns;
  period_ns_ += usage.elapsed_ns;
  switch (detail_) {
    case Detail::kWindows:
      return judge_windows(usage, was_recording, is_end);
    case Detail::kOff:
      return note_quiet(true, usage.elapsed_ns) && change(-1);
    case Detail::kFull:
    case Detail::kNoCalls:
      break;
  }
  if (judge_full(usage)) return true;
  const bool is_quiet = percent_ < kRecoverFactor * budget_;
  return detail_ == Detail::kNoCalls && note_quiet(is_quiet, usage.elapsed_ns) && change(-1);
}

void write_cost(char (&text)[kCostTextBytes], const Watchdog& dog, bool has_graphs) {
  constexpr double kLeastPercent = 0.1;
  text[0] = '\0';
  if (dog.mean_percent() < kLeastPercent && !dog.has_rested()) return;
  const char* graphs = has_graphs ? ", and 4 us a graph: those of more than some ten nodes cost "
                                    "more, 0.2 to 0.35 us a node"
                                  : "";
  const char* rests = dog.has_rested()
                          ? "; what an attached CUPTI costs while nothing is recorded is not in it "
                            "(2 to 30 % of a loop of launches)"
                          : "";
  snprintf(
      text, sizeof text,
      "CUPTI took about %.2g %% of the time of the threads that launch (an estimate by an H200: "
      "1.4 us a launch%s)%s",
      dog.mean_percent(), graphs, rests);
}

const char* detail_text(Detail detail) {
  switch (detail) {
    case Detail::kFull:
      return "all is recorded";
    case Detail::kNoCalls:
      return "calls of CUDA are left out";
    case Detail::kWindows:
      return "work is recorded in one of 8 half seconds";
    case Detail::kOff:
      return "no work is recorded";
  }
  return "";
}

}  // namespace aon::cupti
