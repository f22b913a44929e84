/// What of a job directory `aon diff` compares: its steps, its regions and kernels, its ranks, and
/// what has to be the same for a comparison to mean something.
///
/// Thread: one (HDF5).   Cost: reads columns of /steps, /profile, /regions, /topology and
/// /gpu/kernels; memory while it reads 72 bytes a kept step of a rank, then 8.
/// Errors: kIo, as HDF5 and the file system have them, also where columns do not belong together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::tools::compare {

/// Of a step; all of it is computing, waiting and the rest of MPI.
enum class Part : uint8_t { kDuration, kComputing, kWaiting, kOtherMpi };
constexpr size_t kPartCount = 4;

struct Loop {
  std::string name;
  double count = 0;      ///< steps of most ranks
  double certainty = 1;  ///< how sure it is that these are steps (docs/steps.md); 1: annotated
  /// By Part and step, ns: the mean over the ranks. The first tenth, in which programs warm up, is
  /// not in it; where /steps has not all steps, evenly spaced ones are.
  std::array<std::vector<double>, kPartCount> series;
  std::map<int64_t, std::vector<double>> computing;  ///< by rank and step, ns; the same steps
};

/// Sums over all ranks.
struct Work {
  double time_ns = 0;  ///< exclusive
  double count = 0;
  double bytes = 0;
};

struct Job {
  std::string dir;
  double seconds = 0;  ///< from the first record to the last; NaN: not told
  double cpu_s = 0;    ///< of the ranks; NaN: not told
  double lost_records = 0;
  bool is_complete = false;
  double process_count = 0;         ///< that have something in the tables which are read
  std::vector<std::string> doubts;  ///< what is odd about its tables
  std::set<std::string> programs;
  std::set<std::string> processors;      ///< models
  std::map<int64_t, std::string> ranks;  ///< the node of each
  std::string step_source;               ///< annotated, detected, none
  std::vector<Loop> loops;               ///< those of most time first
  std::map<std::string, Work> regions;   ///< by name
  std::map<std::string, Work> kernels;
};

/// Of the job directory `dir`, whose ledger is `ledger`.
Result<Job> read_job(const std::string& dir, const nlohmann::json& ledger);

}  // namespace aon::tools::compare
