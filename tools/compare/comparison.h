/// Two sets of runs, and what is slower, faster or otherwise in the second: of each loop its steps
/// and their parts, of the whole job its time, of regions and kernels time and number, of ranks
/// those that compute otherwise than the rest of them.
///
/// Runs are what varies where there are two or more of one side: an interval then holds what
/// differs from run to run. A single run of the other side is taken to vary as these do. With one
/// run of each the interval is of the steps within them (statistics.h), and holds nothing of where
/// the ranks were placed or who else used the machine. What is told of many things at once, regions
/// and ranks, has intervals that miss in 5 % of comparisons, not in 5 % of rows (Bonferroni).
///
/// Loops are known by their names: one whose name another loop of its job has is left out.
///
/// Thread: any.   Cost: proportional to steps and regions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/compare/figures.h"
#include "tools/compare/statistics.h"

namespace aon::tools::compare {

constexpr double kError = 0.05;          ///< of an interval
constexpr double kLeastShare = 0.005;    ///< of a step: less is not told of a region
constexpr double kLeastCounts = 0.005;   ///< relative, of calls and bytes
constexpr double kOftenInSteps = 0.1;    ///< calls of a rank and step: fewer are not of the steps
constexpr double kOtherRank = 1.05;      ///< times the median rank's change, and no change at all
constexpr double kLeastCertainty = 0.5;  ///< of steps that decide, as in the summary

/// Time, calls and bytes are of a process and step, where one loop is compared and they are called
/// in one of ten steps or more; else of a process. Of the whole job, first steps and all.
struct RegionChange {
  std::string name;
  bool is_kernel = false;
  bool is_of_steps = false;
  Change time_ns;
  double base_count = 0;
  double count = 0;
  double base_bytes = 0;
  double bytes = 0;
};

struct RankChange {
  int64_t rank = 0;
  std::string base_node;
  std::string node;
  Change computing;
};

struct LoopChange {
  std::string name;
  double base_count = 0;  ///< steps of a run
  double count = 0;
  std::array<Change, kPartCount> parts;  ///< by Part, ns
  double median_rank = 1;                ///< of the ranks' changes of computing
  std::vector<RankChange> ranks;         ///< those that stand out, the most changed first
};

struct Comparison {
  size_t base_runs = 0;
  size_t runs = 0;
  bool is_between_runs = false;
  std::vector<std::string> warnings;  ///< what makes the two less comparable
  Change seconds;                     ///< of the whole job
  Change cpu_s;
  std::vector<LoopChange> loops;      ///< those of all runs, the base's first one first
  bool is_decided_by_steps = false;   ///< else by the job's time
  std::vector<RegionChange> regions;  ///< those that changed: of steps, then others, by difference
};

/// Both have at least one.
Comparison compare(std::span<const Job> base, std::span<const Job> now);

/// The time that decides: a step of the base's first loop, or the job's where that loop is not in
/// all runs or may be none.
const Change& main_change(const Comparison& of);

enum class Verdict : uint8_t { kUnknown, kSame, kSlower, kFaster };
/// kSame: the interval holds no change as well; kUnknown: there is no interval.
Verdict verdict(const Change& change);

}  // namespace aon::tools::compare
