/// What stands out in the job, as sentences with numbers: the rank that computes longest, the most
/// expensive MPI call and who waits in it, the pair of ranks with most of the traffic, losses.
///
/// Fed while the events pass by: profile rows per location, and the messages as a Writer. Each
/// finding has a weight in seconds of all ranks' time, by which they are ordered.
/// Owner: the assembler.   Thread: one.   Cost: two loads per message; nothing for other events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "writers/devices/devices.h"
#include "writers/ledger/sampling.h"
#include "writers/ledger/tally.h"
#include "writers/nccl/lateness.h"
#include "writers/nccl/proxy_waits.h"
#include "writers/profile/messages.h"
#include "writers/profile/profile.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kMaxFindings = 3;

/// "12 s", "1.5 s", "12 ms", "12 us".
std::string seconds_text(double value_s);
std::string text_of_ns(uint64_t time_ns);

/// "came last to 9 of 10", "came last together with others to 9 of 10".
std::string late_text(const Latecomer& late);
/// " (its share)" of what others waited, where it was late together with others.
std::string share_text(const Latecomer& late);
/// "; as long for rank 3", "; as long for ranks 3, 5-7"; "" where nobody else is as late.
std::string alike_text(std::vector<uint32_t> ranks);

/// Why messages and collectives could not be matched: "3 processes lost records" and so on.
std::vector<std::string> hole_texts(const Holes& holes);

/// Others wait for a slow rank where that share of what it makes them lose is seen as waiting.
constexpr double kLeastWaitedShare = 0.2;

/// What is told of operations loses that share of the time that all members worked on them.
constexpr double kLeastOperationShare = 0.01;

/// What is told of NCCL's proxies counts where operations take that share of the ranks' time.
constexpr double kLeastProxyShare = 0.05;

class Findings final : public Writer {
 public:
  /// `waits` (null: not analysed) must live until lines() was called.
  explicit Findings(const WaitSummary* waits) : waits_(waits) {}

  /// `steps` must live until lines() was called.
  void use_steps(const StepMeter* steps) { steps_ = steps; }
  void use_nccl(const nccl::LatenessAnalysis* lateness) { nccl_ = lateness; }
  void use_proxies(const nccl::ProxyWaits* proxies) { proxies_ = proxies; }

  /// The same; null: none.
  void use_devices(const DeviceAnalysis* devices) { devices_ = devices; }

  /// Takes the profile rows of one location (null: of threads without one).
  void add_profile(const Group& group, const Location* location,
                   std::span<const profile::RegionStatistics> rows);

  Status begin(const Model& model) override;
  Status begin_location(const Location& location) override;
  Status events(std::span<const Event> events) override;
  Status end_location() override;
  Status finish(const Outcome& outcome) override;
  /// Without the profile rows: add_profile() gets all of them where the events come together.
  Status save(StateOut* out) override;
  Status load(StateIn* in) override;

  /// At most kMaxFindings lines, the weightiest first. Valid after finish().
  std::vector<std::string> lines(std::span<const LocationTally> tallies) const;
  /// Functions that samples hit, most first. Valid after finish().
  const std::vector<ledger::FunctionCount>& functions() const { return functions_; }

 private:
  struct Finding {
    double weight_s;
    std::string text;
  };
  struct RankTime {
    uint64_t first_ns = 0;     ///< of the master thread
    uint64_t last_ns = 0;      ///< the same
    uint64_t lost_ns = 0;      ///< the same: in which records were lost
    uint64_t mpi_ns = 0;       ///< of the master thread; where it calls no MPI, of the thread
                               ///< that is longest in it
    uint64_t poll_ns = 0;      ///< the part of it in polls
    uint64_t finalize_ns = 0;  ///< in MPI_Finalize
    std::vector<uint64_t> thread_mpi_ns;  ///< of each thread that calls MPI
    bool has_master_mpi = false;
    bool has_aborted = false;  ///< by MPI_Abort

    /// Threads that are in MPI for a tenth as long as the one that is longest, or more.
    uint32_t mpi_thread_count() const;
    std::unordered_map<uint32_t, uint64_t> by_region;      ///< MPI regions, exclusive, all threads
    std::unordered_map<uint32_t, uint64_t> by_annotation;  ///< the program's own, exclusive
  };
  /// What the analysis of waiting tells, by rank.
  struct WaitTimes {
    std::vector<uint64_t> wait_ns;
    std::vector<uint64_t> polled_ns;  ///< what polls waited at most, with the polls themselves
    std::vector<uint64_t> sure_ns;    ///< of wait_ns: no upper bounds
    uint64_t sum_ns = 0;
    uint64_t sum_sure_ns = 0;
    uint64_t by_kind_ns[kWaitKindCount] = {};
    double left_out = 0;  ///< share of the messages or the collectives that could not be matched,
                          ///< the larger
    bool is_left_out_collective = false;
    Holes holes;
    bool is_whole = false;

    /// "90 % of the collectives could not be matched"
    std::string left_out_text() const;
    uint64_t of_others_ns(std::span<const size_t> ranks) const;
    /// How much of `lost_ns` all but `ranks` waited: "2.0 s", "at most 2.0 s".
    std::string of_others_text(std::span<const size_t> ranks, double lost_ns) const;
  };
  /// A rank that seems to make the others wait.
  struct Blame {
    size_t rank;
    Finding finding;
  };

  /// rank_findings.cpp
  WaitTimes wait_times() const;
  void add_culprits(const WaitTimes& waits, std::vector<Finding>* findings) const;
  void add_aborts(std::vector<Finding>* findings) const;
  void add_late_end(std::vector<Finding>* findings) const;
  void add_slow_rank(const WaitTimes& waits, std::vector<Finding>* findings) const;
  uint64_t span_ns(const RankTime& rank) const;
  /// "3"; in a job of several nodes "3 on n1".
  std::string name_of(size_t rank) const;
  std::string names_of(const std::vector<size_t>& ranks) const;
  /// Of what a rank costs the others: before all waiting, and before the call of most time, where
  /// it explains half of it.
  double weight_of_cause_s(const WaitTimes& waits, double lost_ns) const;
  /// The MPI call of most time, and that time; nothing without one.
  std::optional<std::pair<uint32_t, uint64_t>> top_call() const;
  /// step_findings.cpp; "; most of that in steps 120 to 340" of what the rank made others lose by
  /// computing longer, "" where the program marks no steps or it was in most of them.
  std::string computing_steps_text(size_t rank, double lost_ns) const;
  /// The same of what it cost others in operations of NCCL.
  std::string nccl_steps_text(const nccl::LatenessSummary& late, uint32_t member,
                              double lost_ns) const;
  /// Of the slow rank in them, which is not yet among `findings`.
  std::optional<Blame> add_steps(const WaitTimes& waits, std::vector<Finding>* findings) const;
  /// region_findings.cpp
  bool sees_communication() const;
  void add_uneven_region(std::vector<Finding>* findings) const;
  void add_lost_definitions(std::vector<Finding>* findings) const;
  bool add_split_world(std::vector<Finding>* findings) const;
  void add_worlds(std::vector<Finding>* findings) const;
  size_t world_count() const;
  void add_spawned(std::vector<Finding>* findings) const;
  /// lateness_findings.cpp; nothing when nobody stands out.
  std::optional<Blame> find_late_rank(const WaitTimes& waits) const;
  /// nccl_findings.cpp
  void add_nccl(std::vector<Finding>* findings) const;
  void add_nccl_latecomer(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  void add_shared_cpu(double busy_ns, std::vector<Finding>* findings) const;
  void add_slow_link(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  void add_nccl_slow(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  /// network_findings.cpp; false: there is nothing to tell.
  bool add_network_late(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  bool add_slow_gpu(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  /// proxy_findings.cpp
  void add_proxy_waits(const LatenessTable& lateness, std::vector<Finding>* findings) const;
  std::string process_text(uint32_t group) const;
  /// What slow operations may come from, by where their members are.
  struct SlowCauses {
    const char* on_one_node;
    const char* on_several;
  };
  /// lateness_findings.cpp, for MPI and NCCL: of `rows`, whose operations took `all_members_ns`.
  void add_slow_operations(const std::vector<TrueTimes>& rows, double all_members_ns,
                           const SlowCauses& causes, std::vector<Finding>* findings) const;
  void add_slow_collectives(std::vector<Finding>* findings) const;
  /// All members' time in matched operations.
  static double busy_ns(const LatenessTable& table);
  void add_expensive_call(std::span<const LocationTally> tallies,
                          std::vector<Finding>* findings) const;
  double communication_share() const;
  /// wait_findings.cpp; `share` of the ranks' time
  void add_waiting(const WaitTimes& waits, std::vector<Finding>* findings) const;
  void add_known_waiting(const WaitTimes& waits, double share,
                         std::vector<Finding>* findings) const;
  void add_unknown_waiting(const WaitTimes& waits, double share,
                           std::vector<Finding>* findings) const;
  void add_times(std::span<const LocationTally> tallies, std::vector<Finding>* all) const;
  /// device_findings.cpp
  void add_devices(std::vector<Finding>* findings) const;
  void add_unit_bound(std::vector<Finding>* findings) const;
  void add_hot_spot(std::vector<Finding>* findings) const;
  void add_hot_function(std::vector<Finding>* findings) const;
  void add_losses(std::span<const LocationTally> tallies, std::vector<Finding>* findings) const;
  void add_unmatched(std::vector<Finding>* findings) const;
  std::string pool_full_text(bool is_without_agent) const;
  /// ": rank A VERB (T), rank B least (U)".
  std::string extremes_text(const char* verb,
                            const std::function<uint64_t(size_t rank)>& time_of) const;
  std::vector<ledger::FunctionCount> functions_of_ranks() const;
  uint64_t job_ns() const;
  /// What "% of the ranks' time" is of: the job's time, for each thread that calls MPI; of one of
  /// several worlds the time from its first event to its last.
  uint64_t total_ns() const;

  const WaitSummary* waits_;
  const Model* model_ = nullptr;
  std::vector<RankTime> ranks_;  ///< by rank; those without MPI calls stay empty
  std::vector<uint64_t> calls_;  ///< of ranks, by global region
  uint64_t spawn_count_ = 0;
  uint64_t unmatched_count_ = 0;
  std::vector<profile::MessageRow> messages_;
  std::unique_ptr<profile::MessageTable> table_;
  std::unique_ptr<profile::CallSamples> samples_;
  std::vector<ledger::FunctionCount> functions_;
  std::vector<ledger::FunctionCount> rank_functions_;  ///< the same, where there are ranks: theirs
  RankTime* current_ = nullptr;
  std::optional<uint32_t> unsaved_rank_;  ///< whose master thread began since save()
  const StepMeter* steps_ = nullptr;
  const DeviceAnalysis* devices_ = nullptr;
  const nccl::LatenessAnalysis* nccl_ = nullptr;
  const nccl::ProxyWaits* proxies_ = nullptr;
};

}  // namespace aon::writers
