/// Steps: the iterations of a program, and in each of them how long a rank computed, was in MPI and
/// waited there. Annotated ones (RegionRole::kStep) where there are any; otherwise those found in
/// the repeating sequence of each rank's MPI calls. docs/steps.md has the method.
///
///     pass 1: make_step_finder()  a sample of each rank's calls -> its loops -> the ranks' vote
///     pass 2: make_step_meter()   cuts every rank's events at the loops -> StepSummary
///
/// Master threads only.
/// Thread: one.   Cost: about a seventh of an assembly, the search at most 0.8 s per rank; memory:
/// the sample of one rank (10 MiB) and the search in it, at most 36 KiB of patterns per rank
/// (find_loops.h), kMaxStepRows rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "writers/steps/find_loops.h"
#include "writers/waits/waits.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr uint64_t kMaxStepRows = 1'000'000;

/// What a step is made of. compute = duration - MPI; waiting is part of MPI.
enum class StepPart : uint8_t { kDuration, kMpi, kCompute, kWait };
constexpr size_t kStepPartCount = 4;

struct StepRow {
  uint32_t group;
  uint32_t loop;  ///< in StepSummary::loops
  int64_t number;
  uint64_t begin_ns;
  uint64_t part_ns[kStepPartCount];  ///< by StepPart
};

struct StepFigures {
  double mean_ns = 0;
  double deviation_ns = 0;  ///< standard deviation
  uint64_t min_ns = 0;
  uint64_t median_ns = 0;  ///< this and the next: of at most 65536 evenly spaced steps
  uint64_t p95_ns = 0;
  uint64_t max_ns = 0;
};

/// The steps of one loop in one process.
struct StepStatistics {
  uint32_t group = 0;
  uint32_t loop = 0;
  uint64_t count = 0;
  uint64_t matched_count = 0;  ///< like the pattern; all annotated ones
  uint64_t sum_ns = 0;         ///< of durations
  uint64_t first_ns = 0;       ///< median duration of the first tenth of the steps
  uint64_t last_ns = 0;        ///< and of the last tenth
  StepFigures parts[kStepPartCount];
};

struct StepLoop {
  std::string name;         ///< of the annotation, or of the call at which it was found
  uint64_t count = 0;       ///< of most ranks
  uint32_t rank_count = 0;  ///< that have it
  double matched = 1;       ///< share of its steps that are like the pattern
  double agreement = 1;     ///< share of the ranks that have `count` steps
  double sum_ns = 0;        ///< of all ranks
  uint64_t median_ns = 0;   ///< of the ranks' medians
  uint64_t p95_ns = 0;
  uint64_t compute_ns = 0;  ///< the same of computing; of two ranks the faster one's
  uint32_t slowest = 0;     ///< group that computes longest
  uint64_t slowest_ns = 0;  ///< its median
  double trend = 1;         ///< last tenth / first tenth, median of the ranks
};

struct StepSummary {
  bool is_annotated = false;
  double coverage = 0;          ///< share of the ranks' time between start and end of MPI
  double confidence = 0;        ///< 0 to 1, coverage * matched * agreement; 1: annotated
  std::vector<StepLoop> loops;  ///< those of most time first; none: no steps
  std::vector<StepStatistics> statistics;
  std::vector<StepRow> rows;  ///< by group, loop and time
  uint64_t step_count = 0;    ///< more than rows: only some are kept (RowKeeper)
  /// In `loops`, by the number that a loop had in StepMeter::rows_so_far() before finish().
  std::vector<uint32_t> final_loops;
};

/// What the first pass decided.
struct StepPlan {
  bool is_annotated = false;
  struct Loop {
    uint32_t number;
    steps::Candidate pattern;
  };
  std::vector<std::vector<Loop>> loops;  ///< by group
  bool is_sampled = false;  ///< loops may begin and end a little outside of the times found
};
void save_plan(StateOut* out, const StepPlan& plan);
Status load_plan(StateIn* in, const Model& model, StepPlan* plan);

class StepFinder : public Writer {
 public:
  /// Valid after finish().
  virtual const StepPlan& plan() const = 0;
};
std::unique_ptr<StepFinder> make_step_finder();

class StepMeter : public Writer {
 public:
  /// Null before finish(), and when something failed.
  virtual const StepSummary* summary() const = 0;
  /// Of the processes whose master thread has passed; in a share of the last one, up to the next
  /// location.
  virtual const std::vector<StepRow>& rows_so_far() const = 0;
};
/// `waits` (null: not analysed) must have finished and outlive the meter. All shares of an assembly
/// and who combines them have the same plan and `max_rows`: what is kept of a process depends on
/// these and its own steps only.
std::unique_ptr<StepMeter> make_step_meter(StepPlan plan, WaitAnalysis* waits,
                                           uint64_t max_rows = kMaxStepRows);

}  // namespace aon::writers
