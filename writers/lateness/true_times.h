/// What operations take when nobody is late, by communicator, function and bytes: the shortest
/// duration of their members each (lateness.h), of which the median is usual. An operation that
/// takes kSlowOperationRatio times that was slow although nobody was late.
/// Thread: one.   Cost: two look-ups per operation; memory for kMaxSizes rows of up to 512 counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "writers/state.h"

namespace aon::writers {

constexpr double kSlowOperationRatio = 2;
constexpr size_t kMaxSizes = 65536;  ///< of communicators, functions and bytes

/// What operations of one function (global region) and size of a communicator take without waiting.
struct TrueTimes {
  uint32_t communicator = 0;
  uint32_t region = 0;
  uint64_t bytes = 0;
  uint64_t count = 0;
  uint64_t least_ns = 0;
  uint64_t usual_ns = 0;  ///< median, to an eighth of a power of two
  uint64_t longest_ns = 0;
  uint64_t slow_count = 0;  ///< took kSlowOperationRatio times the usual or more
  uint64_t slow_ns = 0;     ///< these, beyond the usual
};

class TrueTimeTable {
 public:
  /// An operation that took `time_ns`. False: there was no row for it any more.
  bool add(uint32_t communicator, uint32_t region, uint64_t bytes, uint64_t time_ns);

  /// By communicator, region and bytes; the table is empty then.
  std::vector<TrueTimes> take();

  /// For a table of other operations.
  void save(StateOut* out) const;
  /// Adds what that one had. Operations for which there is no row are added to `left_out_count`.
  Status load(StateIn* in, uint64_t* left_out_count);

 private:
  struct Times {
    uint64_t count = 0;
    uint64_t sum_ns = 0;
  };
  struct Spread {
    TrueTimes row;
    std::map<uint32_t, Times> times;  ///< by eighths of powers of two
  };
  static void judge(Spread* spread);
  Spread* spread_of(uint32_t communicator, uint32_t region, uint64_t bytes);

  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Spread> spreads_;
};

/// The row that lost most time to slow operations; null: none lost any.
const TrueTimes* find_slowest(const std::vector<TrueTimes>& rows);

}  // namespace aon::writers
