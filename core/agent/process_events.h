/// Starts and ends of processes on their way to the housekeeping thread. What it does about a start
/// (files below /proc, counters, samples: a millisecond of CPU) is not waited for, and while
/// ranks of the node are still to come these need the cores: starts are kept back until all have
/// attached or none comes any more, half a second at most; and, where there are more ranks than
/// CPUs, until they have left MPI_Init or MPI_Session_init, where they wait for each other by
/// sleeping a little and often, which counters make dear.
///
///     start ---> kept back ---> due: all came, or none came of late, and are out of MPI_Init |
///                                    it is old | an end came | somebody waits for it
///
/// Thread: whoever holds the lock of its owner.   Cost: a vector.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/agent/state.h"

namespace aon::agent {

struct ProcessEvent {
  bool is_start;
  uint32_t process;
  int32_t pid;
  int32_t rank;
  uint64_t counted_calls;     ///< accounted already
  std::vector<int32_t> tids;  ///< of one that has ended by a fault
};

class ProcessEvents {
 public:
  ProcessEvents(const State* state, uint32_t cpu_count) : state_(state), cpu_count_(cpu_count) {}

  void put(ProcessEvent event, uint64_t now_ns) {
    if (events_.empty()) first_ns_ = now_ns;
    last_ns_ = now_ns;
    has_end_ = has_end_ || !event.is_start;
    events_.push_back(std::move(event));
  }
  /// Whether take() should be called now.
  bool is_due(uint64_t now_ns) const noexcept {
    if (events_.empty()) return false;
    if (has_end_ || now_ns - first_ns_ >= kInitNs) return true;
    if (is_any_in_init()) return false;
    return now_ns - first_ns_ >= kStartNs || now_ns - last_ns_ >= kPauseNs ||
           !ranks_are_coming(state_->header());
  }
  /// All of them, due or not.
  std::vector<ProcessEvent> take() {
    has_end_ = false;
    return std::exchange(events_, {});
  }
  bool is_empty() const noexcept { return events_.empty(); }
  /// Nobody has come yet, or ranks are to come that need all CPUs.
  bool are_cpus_wanted() const noexcept {
    const StateHeader& header = state_->header();
    const bool is_anybody_here = header.registered_count.load(std::memory_order_relaxed) != 0 ||
                                 header.process_count.load(std::memory_order_relaxed) != 0;
    return !is_anybody_here || (are_more_than_cpus() && ranks_are_coming(header));
  }

 private:
  /// Ranks that start together are not further apart.
  static constexpr uint64_t kPauseNs = 100'000'000;
  /// MPI_Init of a large job takes longer: of that one the rest is seen.
  static constexpr uint64_t kInitNs = 3'000'000'000;

  bool are_more_than_cpus() const noexcept {
    return state_->header().expected_ranks.load(std::memory_order_relaxed) > cpu_count_;
  }
  bool is_any_in_init() const noexcept {
    if (!are_more_than_cpus()) return false;
    const uint32_t first = state_->header().first_process;
    return std::any_of(events_.begin(), events_.end(), [&](const ProcessEvent& event) {
      const ProcessCell& cell = state_->process(event.process - first);
      return event.is_start && cell.is_in_init.load(std::memory_order_relaxed) != 0;
    });
  }

  const State* state_;
  uint32_t cpu_count_;
  std::vector<ProcessEvent> events_;
  uint64_t first_ns_ = 0;  ///< when the oldest was put
  uint64_t last_ns_ = 0;   ///< the same of the newest
  bool has_end_ = false;
};

}  // namespace aon::agent
