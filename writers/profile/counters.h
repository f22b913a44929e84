/// Hardware counters of one location by region: what the calls of a region added to each counter.
///
/// | figure        | meaning                                                                     |
/// |---------------|-----------------------------------------------------------------------------|
/// | count         | calls whose counts are known and in the sums                                |
/// | inexact_count | calls during which a counter was off the PMU; they are in no sum            |
/// | inclusive     | between the call's two ends, a bit more than the call (docs/counters.md);   |
/// |               | of a recursive region, the outermost call's                                 |
/// | exclusive     | the same less what calls inside it added                                    |
///
/// The row kOutsideCalls is what the thread did between its calls, from its first event to
/// the entry of its last call. A sampled call stands for `weight` calls, as in profile.h, and the
/// calls that were not timed are among them.
/// Thread: one.   Cost: a few ns per event; nothing without counters.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "writers/profile/counted_sites.h"
#include "writers/profile/local_ids.h"
#include "writers/writer.h"

namespace aon::writers::profile {

constexpr uint32_t kOutsideCalls = 0xffffffffu;  ///< in the place of a region

struct CounterStatistics {
  uint32_t region = 0;  ///< global id
  uint32_t metric = 0;  ///< global id
  uint64_t count = 0;
  uint64_t inexact_count = 0;
  uint64_t inclusive = 0;
  uint64_t exclusive = 0;
};

class LocationCounters {
 public:
  /// Forgets the last location and starts `location` of `group`.
  void begin(const Group& group, const Location& location);

  void add(const Event& event);

  /// Rows by region and counter.
  std::vector<CounterStatistics> end() const;

 private:
  using Values = std::vector<uint64_t>;
  struct Frame {
    uint32_t region;  ///< global; kOutsideCalls: has no definition
    uint32_t weight;
    bool has_values;
    bool is_exact;
    bool is_timed;
    Values entry;
    Values children;
  };

  void enter(const Event& event);
  void leave();
  void add_call(const Frame& frame, const Values& delta);

  LocalIds regions_;
  CountedSites counted_;
  std::vector<uint32_t> metrics_;  ///< global ids, by number of the counter
  std::vector<Frame> stack_;
  Values now_;
  Values last_exit_;
  bool has_now_ = false;  ///< `now_` is of the next Enter or Leave
  bool now_is_exact_ = true;
  uint32_t valued_depth_ = 0;                      ///< frames with values
  std::unordered_map<uint32_t, uint32_t> active_;  ///< the same of each region
  std::map<std::pair<uint32_t, uint32_t>, CounterStatistics> rows_;
};

}  // namespace aon::writers::profile
