/// Holds the measured cost of profiling to the budget, by sampling polling calls more thinly.
///
///     cost > 1.2 x budget, or            --> the dearest sampled site: N doubles, after
///     debt and cost > 0.8 x budget,          kMaxPeriod it is counted only
///     and lowering helps
///     cost < 0.5 x budget, or with the   --> the last change is taken back; if the cost then
///     last change taken back < 0.95 x,       passes the budget again, `wait` doubles
///     for `wait`, and no debt
///
/// Lowering helps where all that can be lowered is half of what is too much, or alone more than the
/// budget; a kind of site (polls, NCCL, a provider) with less than a tenth of the budget stays as
/// it is. So no kind is given up for what something else costs, an agent beside ranks that sleep,
/// and what is left of all kinds is within the budget.
/// Cost is averaged over about a second, so one step is judged before the next. Debt is what has
/// been spent beyond the budget so far by what could have been lowered: it is paid back; what a
/// start costs otherwise is not. Only sites whose own mode is sampling are touched: a call that
/// moves a message keeps its identity.
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
constexpr double kRoomFactor = 0.95;
constexpr double kRelevantBudgetPart = 0.1;  ///< of a kind, to be lowered
constexpr double kRelevantExcessPart = 0.5;  ///< of all kinds together
constexpr uint64_t kFirstWaitSeconds = 10;
constexpr uint64_t kMaxWaitSeconds = 600;

/// A node provider that costs the processes something is a site, too, of the node: its mode says
/// how many times less it does than it was asked for.
constexpr uint32_t kFirstProviderSite = 0x10000;

/// An operation of NCCL, its callbacks that write no record of their own among it (bench nccl).
constexpr double kNcclCallNs = 120;
/// A record of steps of its proxy: of each step five callbacks, seven with the network plugin's, at
/// 110 ns (bench nccl); it has half of kNcclStepsPerRecord on average.
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
  double cost_per_second;             ///< ns a second that its timed calls cost, in the agent, too
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
  /// Forgets what it did to one site: somebody else says what its mode is.
  void forget(uint32_t process, uint32_t site);

 private:
  /// A change, and what it saved in percent of the ranks' CPU time.
  struct Step {
    ModeChange change;
    double saved_percent;
  };

  bool has_room() const;
  std::vector<ModeChange> degrade(const IntervalCost& cost, std::span<const SiteLoad> sites,
                                  double excess);
  std::vector<ModeChange> recover(std::span<const SiteLoad> sites);

  double percent_;
  double average_ = 0;
  double debt_ns_ = 0;  ///< since the beginning; below 0: less than the budget was spent
  double quiet_seconds_ = 0;
  double wait_seconds_ = kFirstWaitSeconds;
  bool has_recovered_ = false;  ///< since the last degradation
  std::vector<Step> changes_;
};

/// The next thinner mode of a sampling site; kModeCount is the last.
uint32_t thinner_mode(uint32_t mode, uint32_t last_period = kMaxPeriod) noexcept;

}  // namespace aon::agent
