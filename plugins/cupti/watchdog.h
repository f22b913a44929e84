/// Holds what CUPTI costs to the budget, by recording less: CUPTI itself works in the program's
/// calls and knows no limit.
///
///     full --> no calls --> windows --> off       cost > 1.2 x budget, twice in a row
///     full ---------------> windows               where leaving calls out saves too little
///     full <-- no calls <-- windows               a cost that was < 0.5 x budget for `wait`
///     full <--------------- windows               where it came from there
///                           windows <-- off       after `wait`
///
/// `wait` is 30 s and doubles, up to 10 minutes, when a level that was gone back to is too dear
/// again.
/// Much like the rules of the agent's budget (core/agent/budget.h), which cannot do it: what CUPTI
/// costs is known only in the process. Cost is measured (CPU of CUPTI's thread and of ours, CUPTI's
/// own records of its overhead) but for what a record costs inside of the program's calls, which
/// is estimated by its kind (kLaunchNs ...). It is held against the time that passed, once for each
/// thread that launches (launch_threads): these pay for it, whatever other threads of the process
/// use.
/// Thread: a value, one owner; no clock, no I/O.
#pragma once

#include <cstdint>

namespace aon::cupti {

/// What is recorded: each level less than the one before.
enum class Detail : uint8_t {
  kFull = 0,  ///< what was asked for
  kNoCalls,   ///< no calls of CUDA
  kWindows,  ///< work and its calls in one of kWindowPeriod intervals, which all ranks have at once
  kOff,      ///< graphs as one alone, which cannot be left out (kinds.h)
};
constexpr uint32_t kWindowPeriod = 8;

// What a record costs in the program's calls, as an H200 showed with CUPTI of CUDA 13.0 (means of
// loops with and without it, docs/gpu-cost.md).
constexpr uint64_t kLaunchNs = 1400;  ///< a kernel, copy or set: 1.0 to 1.9 us, with its call's
constexpr uint64_t kNodeNs = 900;     ///< one of a graph that is recorded node by node
constexpr uint64_t kGraphNs = 4000;   ///< one that is recorded as one: 1.5 to 3.5 us, much more of
                                      ///< the host where it has hundreds of nodes
constexpr uint64_t kOtherNs = 50;     ///< a call, an external id of one, a wait
constexpr uint64_t kLostNs = 700;     ///< nobody knows of what

constexpr uint64_t kFirstWaitNs = 30'000'000'000;
constexpr uint64_t kMaxWaitNs = 600'000'000'000;

/// What was used in one interval.
struct Usage {
  uint64_t elapsed_ns;
  double launch_threads;  ///< calls of CUDA over those of the busiest thread; at least 1
  uint64_t records_ns;    ///< estimate for those read and those dropped
  uint64_t overhead_ns;   ///< as CUPTI tells
  uint64_t worker_cpu_ns;
  uint64_t drain_cpu_ns;
  uint64_t spared_ns = 0;      ///< of all that, what Detail::kNoCalls would not cost (cost.h)
  uint64_t kept_ns = 0;        ///< of records_ns, what no level spares: graphs as one
  uint32_t next_interval = 0;  ///< of the period of windows: the one that begins now, by the clock
};

class Watchdog {
 public:
  /// `least`: no less can be recorded.
  explicit Watchdog(double budget_percent = 1, Detail least = Detail::kOff)
      : budget_(budget_percent), least_(least) {}

  /// Judges the interval that has ended. True: detail() has changed.
  bool step(const Usage& usage);

  Detail detail() const { return detail_; }
  /// Whether work is recorded in the interval that begins now.
  bool is_recording() const {
    return detail_ < Detail::kWindows ||
           (detail_ == Detail::kWindows && (interval_ == 0 || is_overdue_));
  }
  /// Of the last interval, in percent, without what no level spares.
  double percent() const { return percent_; }
  /// In some interval nothing was recorded, for the cost.
  bool has_rested() const { return has_rested_; }
  /// Of all intervals together.
  double mean_percent() const { return base_ns_ > 0 ? 100 * cost_ns_ / base_ns_ : 0; }

 private:
  bool change(int by);
  bool judge_full(const Usage& usage);
  bool is_enough(const Usage& usage) const;
  bool judge_windows(const Usage& usage, bool was_recording, bool is_end);
  void begin_period();
  bool note_quiet(bool is_quiet, uint64_t elapsed_ns);

  double budget_;
  Detail least_;
  double percent_ = 0;
  double cost_ns_ = 0;  ///< of all intervals
  double base_ns_ = 0;
  Detail detail_ = Detail::kFull;
  bool has_rested_ = false;
  bool has_recovered_ = false;
  bool has_skipped_ = false;  ///< from full to windows
  bool was_dear_ = false;
  uint32_t interval_ = 0;      ///< of the period of windows; 0 is the one that is recorded
  double period_cost_ns_ = 0;  ///< of the intervals of this period
  double period_base_ns_ = 0;
  bool has_window_ = false;    ///< one of them was recorded
  bool is_overdue_ = false;    ///< the last period had none: whoever judges was held up
  double window_percent_ = 0;  ///< of the last window
  uint64_t period_ns_ = 0;
  uint64_t quiet_ns_ = 0;
  uint64_t wait_ns_ = kFirstWaitNs;
};

constexpr uint32_t kCostTextBytes = 400;

/// What the ledger says of the cost of all intervals; "" where that is little. `has_graphs`: some
/// were recorded as one.
void write_cost(char (&text)[kCostTextBytes], const Watchdog& dog, bool has_graphs);

/// "calls of CUDA are left out", ...
const char* detail_text(Detail detail);

}  // namespace aon::cupti
