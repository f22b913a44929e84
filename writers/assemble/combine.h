/// The combiner of an assembly in shares (shares.h): starts them, waits for them and makes the
/// result of what they know.
/// Thread: one.   Cost: proportional to definitions, and to rows of the result.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "writers/assemble/shares.h"
#include "writers/assemble/span_window.h"

namespace aon::writers {

/// What a pass over all events has left, by one process or by shares.
struct Passed {
  std::unique_ptr<WaitAnalysis> waits;  ///< null: not analysed
  std::vector<WriterSlot> writers;      ///< finished; point to `waits`
  Collectors collectors;                ///< of these
  Outcome outcome;
  std::vector<LocationTally> tallies;  ///< in order of Model::locations
  LeftOutSpans left_out;
  uint32_t share_count = 1;
  uint32_t replaced_count = 0;  ///< shares that a child did in the stead of another node
  std::vector<std::string> remarks;
};

struct CombineOptions {
  std::filesystem::path staging;   ///< of the result
  std::vector<bool> is_elsewhere;  ///< by share: an agent does it
  std::function<void()> beat;
};

/// Needs kSharesFolder to be free; it is removed afterwards.
/// Errors: those of a share, and kUnavailable, when nodes are silent: nothing is lost, one process
/// can do all.
Status combine_shares(JobModel* parts, const SharePlan& plan, const CombineOptions& options,
                      Passed* passed);

}  // namespace aon::writers
