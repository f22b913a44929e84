/// Follows one loop through one thread's calls and cuts its steps.
///
/// A step goes from the first call of an iteration to that of the next, so what is computed between
/// them is in it. The last one ends where the call behind its pattern begins, and counts only when
/// the pattern is complete. Fewer than kLeastSteps in a row are no steps.
/// Thread: one.   Cost: a hash look-up per call; memory for the calls before an anchor.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "writers/steps/find_loops.h"

namespace aon::writers::steps {

/// Where a step may begin: the times that were in MPI and waited before it.
struct Cut {
  uint64_t time_ns;
  uint64_t mpi_ns;
  uint64_t wait_ns;
};

/// When a loop's iterations may run.
struct LoopTime {
  uint64_t earliest_ns;  ///< anchors are between the two, the pattern's own times at least
  uint64_t latest_ns;
  uint64_t previous_ns;  ///< end of the loop before: the first iteration does not begin earlier
  uint64_t next_ns;      ///< begin of the next loop: the last iteration must have ended by then
};

struct CutStep {
  Cut begin;
  Cut end;
  bool is_matched;
};

class LoopTracker {
 public:
  using Sink = std::function<void(const CutStep&)>;

  LoopTracker(const Candidate& pattern, const LoopTime& time, Sink sink);

  /// The next call: its token, the time outside MPI before it, and the cut at its begin.
  void add(uint64_t token, uint64_t gap_ns, const Cut& at);
  /// Calls may be missing here: no step goes on behind.
  void interrupt();
  /// No call follows; `at`: the end of the last one.
  void finish(const Cut& at);

 private:
  struct Seen {
    uint64_t token;
    Cut at;
  };

  void look_for_tail(const Cut& at);
  void open(const Cut& at);
  void close();
  void emit(const Cut& begin, const Cut& end);
  Cut start_of_iteration(const Cut& anchor) const;
  void follow(uint64_t token);
  void note(uint64_t token);
  bool is_complete() const { return !pattern_.body.empty() && followed_ + lead_ >= body_size(); }
  size_t body_size() const { return pattern_.body.size(); }

  Candidate pattern_;
  LoopTime time_;
  Sink sink_;
  size_t lead_;
  std::vector<Seen> recent_;  ///< ring of the last lead_ calls
  uint64_t call_count_ = 0;

  bool is_open_ = false;
  Cut begin_{};          ///< of the step that runs
  uint64_t calls_ = 0;   ///< since its anchor
  size_t followed_ = 0;  ///< of the pattern, so far without a difference
  bool is_following_ = false;
  bool has_tail_ = false;  ///< the pattern is complete and `tail_` where it ends
  Cut tail_{};
  std::unordered_map<uint64_t, uint64_t> seen_;  ///< token -> step in which it was
  uint64_t step_ = 0;
  uint64_t token_set_ = 0;        ///< of this step, as in Candidate
  std::vector<CutStep> waiting_;  ///< until they are kLeastSteps
  uint64_t run_count_ = 0;
};

}  // namespace aon::writers::steps
