/// What of a job directory `aon diff` compares: its steps, its regions and kernels, its ranks, and
/// what has to be the same for a comparison to mean something.
///
/// Thread: one (HDF5).   Cost: reads columns of /steps, /profile, /ranks, /regions, /topology and
/// /gpu/kernels; memory: 24 bytes a kept step and rank, at most a million of them.
/// Errors: kInvalid where the files' columns do not belong together, else as HDF5 and the file
/// system have them.
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
  double count = 0;  ///< steps of most ranks
  /// By Part and step, ns: the mean over the ranks. The first tenth, in which programs warm up, is
  /// not in it.
  std::array<std::vector<double>, kPartCount> series;
  std::map<int64_t, std::vector<double>>
      computing;  ///< by rank and step, ns; without the first, too
};

/// Sums over all ranks.
struct Work {
  double time_ns = 0;  ///< exclusive
  double count = 0;
  double bytes = 0;
};

struct Job {
  std::string dir;
  double seconds = 0;  ///< from the first record to the last
  double cpu_s = 0;    ///< of the ranks
  double lost_records = 0;
  bool is_complete = false;
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
