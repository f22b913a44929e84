/// Holds the measured cost of profiling to the budget, by sampling polling calls more thinly.
///
///     cost > 1.2 x budget, or            --> the dearest sampled site: N doubles, after
///     spent > budget and                     kMaxPeriod it is counted only
///     cost > 0.8 x budget
///     cost < 0.5 x budget for `wait`,    --> the last change is taken back; if the cost then
///     and spent < budget                     passes the budget again, `wait` doubles
///
/// Cost is averaged over about a second, so one step is judged before the next. `spent` is the cost
/// of the whole job so far: what a start cost too much is paid back. Only sites whose
/// own mode is sampling are touched: a call that moves a message keeps its identity.
/// Thread: a value, one owner; no clock, no I/O.   Cost: proportional to sampled sites.
#pragma once

#include <aon/ring.h>

#include <cstdint>
#include <span>
#include <vector>

namespace aon::agent {

constexpr uint32_t kMaxPeriod = 4096;  ///< one in so many calls is timed at least, else none
constexpr double kDegradeFactor = 1.2;
constexpr double kPayBackFactor = 0.8;
constexpr double kRecoverFactor = 0.5;
constexpr uint64_t kFirstWaitSeconds = 30;
constexpr uint64_t kMaxWaitSeconds = 600;

/// A node provider that costs the processes something is a site, too, of the node: its mode says
/// how many times less it does than it was asked for.
constexpr uint32_t kFirstProviderSite = 0x10000;

/// An operation of NCCL, its callbacks that write no record of their own among it (bench nccl).
constexpr double kNcclCallNs = 120;
/// A record of steps of its proxy: five callbacks of each of kNcclStepsPerRecord, half of them on
/// average (bench nccl).
constexpr double kNcclStepsNs = 1000;

/// What so many records of NCCL, of which `step_records` are of steps, cost beside storing them.
constexpr double nccl_cost_ns(double records, double step_records) {
  return records * kNcclCallNs + step_records * kNcclStepsNs;
}

/// One call site as it is now.
struct SiteLoad {
  uint32_t process;
  uint32_t site;
  uint32_t mode;                      ///< its mode word, without kModePaused
  double cost_per_second;             ///< ns a second that its timed calls cost
  uint32_t last_period = kMaxPeriod;  ///< behind it comes kModeCount
};

/// What was used in the last interval.
struct IntervalCost {
  double seconds;
  double application_ns;  ///< cost of recording, in the processes
  double agent_ns;        ///< CPU of the agent
  double ranks_ns;        ///< CPU of the processes, all of it
};

struct ModeChange {
  uint32_t process;
  uint32_t site;
  uint32_t old_mode;
  uint32_t new_mode;
};

class Budget {
 public:
  explicit Budget(double percent) : percent_(percent) {}

  /// One step, about once a second. At most one change.
  std::vector<ModeChange> step(const IntervalCost& cost, std::span<const SiteLoad> sites);

  /// The averaged cost, in percent of the ranks' CPU time.
  double percent() const noexcept { return average_; }
  /// Forgets a process that has ended.
  void forget(uint32_t process);

 private:
  std::vector<ModeChange> degrade(std::span<const SiteLoad> sites);
  std::vector<ModeChange> recover(std::span<const SiteLoad> sites);

  double percent_;
  double average_ = 0;
  double spent_ns_ = 0;  ///< since the beginning
  double ranks_ns_ = 0;
  double quiet_seconds_ = 0;
  double wait_seconds_ = kFirstWaitSeconds;
  bool has_recovered_ = false;  ///< since the last degradation
  std::vector<ModeChange> changes_;
};

/// The next thinner mode of a sampling site; kModeCount is the last.
uint32_t thinner_mode(uint32_t mode, uint32_t last_period = kMaxPeriod) noexcept;

}  // namespace aon::agent
