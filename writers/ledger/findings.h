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
#include <vector>

#include "writers/devices/devices.h"
#include "writers/ledger/sampling.h"
#include "writers/ledger/tally.h"
#include "writers/nccl/lateness.h"
#include "writers/profile/messages.h"
#include "writers/profile/profile.h"
#include "writers/steps/steps.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kMaxFindings = 3;

/// "12 s", "1.5 s", "12 ms", "12 us".
std::string seconds_text(double value_s);

/// What is told of operations loses that share of the time that all members worked on them.
constexpr double kLeastOperationShare = 0.01;

class Findings final : public Writer {
 public:
  /// `waits` (null: not analysed) must live until lines() was called.
  explicit Findings(const WaitSummary* waits) : waits_(waits) {}

  /// `steps` must live until lines() was called.
  void use_steps(const StepMeter* steps) { steps_ = steps; }
  void use_nccl(const nccl::LatenessAnalysis* lateness) { nccl_ = lateness; }

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
  /// One rank's master thread.
  struct RankTime {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t mpi_ns = 0;
    std::unordered_map<uint32_t, uint64_t> by_region;      ///< MPI regions, exclusive
    std::unordered_map<uint32_t, uint64_t> by_annotation;  ///< the program's own, exclusive
  };

  /// step_findings.cpp; true when a slow rank is among them.
  bool add_steps(std::vector<Finding>* findings) const;
  /// region_findings.cpp
  bool sees_communication() const;
  void add_uneven_region(std::vector<Finding>* findings) const;
  void add_lost_definitions(std::vector<Finding>* findings) const;
  void add_split_world(std::vector<Finding>* findings) const;
  void add_spawned(std::vector<Finding>* findings) const;
  void add_slow_rank(std::vector<Finding>* findings) const;
  /// lateness_findings.cpp; false when nobody stands out.
  bool add_latecomer(std::vector<Finding>* findings) const;
  /// nccl_findings.cpp
  void add_nccl(std::vector<Finding>* findings) const;
  void add_nccl_latecomer(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
  void add_slow_link(const nccl::LatenessSummary& late, std::vector<Finding>* findings) const;
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
  void add_expensive_call(std::vector<Finding>* findings) const;
  void add_waiting(std::vector<Finding>* findings) const;
  /// device_findings.cpp
  void add_devices(std::vector<Finding>* findings) const;
  void add_unit_bound(std::vector<Finding>* findings) const;
  void add_hot_spot(std::vector<Finding>* findings) const;
  void add_hot_function(std::vector<Finding>* findings) const;
  static void add_losses(std::span<const LocationTally> tallies, std::vector<Finding>* findings);
  std::string extremes_text(const std::function<uint64_t(size_t rank)>& time_of) const;
  uint64_t total_ns() const;

  const WaitSummary* waits_;
  const Model* model_ = nullptr;
  std::vector<RankTime> ranks_;  ///< by rank; those without MPI calls stay empty
  std::vector<uint64_t> calls_;  ///< by global region
  std::vector<profile::MessageRow> messages_;
  std::unique_ptr<profile::MessageTable> table_;
  std::unique_ptr<profile::CallSamples> samples_;
  std::vector<ledger::FunctionCount> functions_;
  RankTime* current_ = nullptr;
  std::optional<uint32_t> unsaved_rank_;  ///< whose master thread began since save()
  const StepMeter* steps_ = nullptr;
  const DeviceAnalysis* devices_ = nullptr;
  const nccl::LatenessAnalysis* nccl_ = nullptr;
};

}  // namespace aon::writers
