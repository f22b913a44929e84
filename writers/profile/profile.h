/// Profile of one location: how often each region was called and where the time went, summed up
/// from its events.
///
/// | figure       | meaning                                                                     |
/// |--------------|-----------------------------------------------------------------------------|
/// | count        | calls; exact also where only some calls were timed (CountsDefinition)       |
/// | timed_count  | calls whose duration is known; the times below come from them               |
/// | inclusive_ns | time between enter and leave; of a recursive region, the outermost call's   |
/// | exclusive_ns | the same less the time in regions called from it                            |
/// | min_ns, max_ns | of one call                                                               |
/// | bytes        | sent, received, read and written by the calls, as MPI was told              |
/// | histogram[b] | calls of 2^b to 2^(b+1) ns; b = 0 also holds 0 ns, the last all longer ones |
///
/// A sampled call stands for `weight` calls in every sum and in the histogram: those are estimates,
/// unbiased while the calls that were timed are like the others; in times they are bounded
/// (sampled_time.h). Other records of such a site are of calls that found something and were not
/// timed (counted_sites.h): they count, but have no time. A call that is open at the end counts
/// with the time up to there. A region whose end was lost (EventKind::kCut) counts, but has no
/// time; one that began in a hole has its whole time. A range (ValueType::kRangeEnd) counts where
/// it ends, without exclusive time.
///
/// Thread: one.   Cost: about 5 ns per event, no hashing; memory grows with the regions of one
/// location, not with events.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "writers/profile/counted_sites.h"
#include "writers/profile/local_ids.h"
#include "writers/profile/sampled_time.h"
#include "writers/writer.h"

namespace aon::writers::profile {

constexpr size_t kHistogramBuckets = 40;  ///< the last begins at 2^39 ns = 9 minutes

/// Bucket of a duration: floor(log2), see the table above.
constexpr size_t histogram_bucket(uint64_t duration_ns) {
  const size_t bucket =
      duration_ns == 0 ? 0 : 63 - static_cast<size_t>(__builtin_clzll(duration_ns));
  return bucket < kHistogramBuckets ? bucket : kHistogramBuckets - 1;
}

struct RegionStatistics {
  uint32_t region = 0;  ///< global id
  uint64_t count = 0;
  uint64_t timed_count = 0;
  uint64_t inclusive_ns = 0;
  uint64_t exclusive_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  uint64_t bytes = 0;
  std::array<uint64_t, kHistogramBuckets> histogram{};
};

class LocationProfile {
 public:
  explicit LocationProfile(const Model& model);

  /// Forgets the last location and starts `location` of `group`.
  void begin(const Group& group, const Location& location);

  void add(const Event& event);

  /// Closes what is open, puts in the exact counts, and returns the rows by region. They live until
  /// the next begin().
  std::span<const RegionStatistics> end();

 private:
  struct Row {
    RegionStatistics statistics;
    uint32_t active_calls = 0;  ///< of this region on the stack
    SampledTime time;
  };
  struct Frame {
    uint32_t row;
    uint32_t weight;
    uint64_t enter_ns;
    uint64_t children_ns;
    bool is_timed;
  };

  uint32_t row_of(uint32_t global_region);
  void enter(const Event& event);
  void leave(const Event& event);
  void add_range(const Event& end);
  void close_top(uint64_t time_ns, bool is_timed = true);
  void add_bytes(uint64_t bytes);
  void put_exact_counts();

  std::vector<uint32_t> row_index_;  ///< by global region; kNoRow
  std::vector<Row> rows_;
  std::vector<RegionStatistics> result_;
  std::vector<Frame> stack_;
  LocalIds regions_;
  const Group* group_ = nullptr;
  uint32_t slot_ = 0;
  uint64_t first_ns_ = UINT64_MAX;  ///< of the location's events
  uint64_t last_ns_ = 0;
  bool is_cut_ = false;  ///< kCut came: the next Leave ends nothing
  CountedSites counted_;
};

/// A row without times, for calls on a thread that has no location: it only made counted calls.
struct UncoveredCount {
  const Group* group;
  uint32_t slot;
  RegionStatistics statistics;
};
std::vector<UncoveredCount> uncovered_counts(const Model& model);

}  // namespace aon::writers::profile
