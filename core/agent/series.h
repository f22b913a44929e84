/// Records of node providers (samples of metrics, call samples) on their way to the encode thread,
/// and what accumulated metrics have come to. Both lie in the state memfd: a killed worker takes no
/// sample with it, and the next one, whose providers count from 0 again, goes on from the last
/// value.
///
///     housekeeping --put--> SampleCell[head] ... SampleCell[tail] --read--> encode thread
///                           <------------- tail, after its commit ------------
///
/// Thread: one producer, the housekeeping thread. The encode thread reads the cells (encoder.h).
/// Cost: one copy of 72 bytes and a look-up in a map per sample.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/agent/state.h"

namespace aon::agent {

class Series {
 public:
  explicit Series(const State* state);

  /// Announces an accumulated metric. True: an earlier worker had it, and its count goes on.
  bool add_accumulated(uint32_t process, uint32_t metric);
  /// Forgets the metrics of a process that has ended.
  void forget(uint32_t process);
  /// Puts one sample; `value` and times count from 0 in each worker.
  /// False: it is full, because the disk hangs; counted as lost.
  bool put(uint32_t process, uint32_t metric, uint64_t ticks, double value, uint64_t enabled_ns,
           uint64_t running_ns);
  /// Puts a record of one or two slots into a stream of the agent's.   Errors: as put().
  bool put_record(uint32_t process, uint16_t slot, const Record& record);
  /// Counts records that a provider could not get, in the time between.
  void add_refused(uint32_t process, uint16_t slot, uint64_t count, uint64_t first_ticks,
                   uint64_t last_ticks);

 private:
  using Key = std::pair<uint32_t, uint32_t>;  ///< process, metric

  /// Where an accumulated metric stood when this worker took it over.
  struct Base {
    uint32_t cell;
    double value;
    uint64_t enabled_ns;
    uint64_t running_ns;
  };

  bool push(const SampleCell& sample);
  bool is_wanted(uint32_t process) const;
  uint32_t take_cell();
  void release(uint32_t cell);

  const State* state_;
  std::map<Key, Base> bases_;
  std::map<Key, uint32_t> inherited_;  ///< cells of an earlier worker
  std::vector<uint32_t> free_cells_;
};

}  // namespace aon::agent
