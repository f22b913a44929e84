/// What the watchdog decides, done: kinds are switched, and what is not recorded is told as
/// intervals on a timeline of its own ("GPU work not recorded"), as a marker at each step, and in
/// the ledger. Graphs as one are left alone (kinds.h): they are recorded all the time, or their
/// nodes with the kernels.
/// Owner: session.   Thread: switch_on() the one in cuInit, then our own.   Cost: twice a second
/// four reads of CPU clocks; a switch costs about 190 calls of CUPTI.
#pragma once

#include "cupti/drain.h"
#include "cupti/gaps.h"
#include "cupti/kinds.h"
#include "cupti/watchdog.h"

namespace aon::cupti {

class Governor {
 public:
  void use(const Client* client, const Wanted& wanted);
  /// The first interval begins.   Thread: our own.
  void begin();
  /// When the next interval begins that is at least half of one away, of CLOCK_MONOTONIC.
  uint64_t next_interval_ms(uint64_t now_ms) const;

  /// Switches on what is to be recorded now, or all of it off. `missing`: kinds.h.
  Code switch_on(MissingKinds* missing);
  /// Switches all off: the subscription is given back. Behind it graphs are recorded node by node,
  /// for some may be made in between.
  void leave();
  /// Whether each kernel of a graph is recorded, and not the graph as one.
  bool has_graph_nodes() const { return graphs_ == Graphs::kByNode; }
  /// ... though the environment asks for the other.
  bool has_lost_graphs() const { return has_graph_nodes() && !wanted_.has_graph_nodes; }

  /// After a flush: an interval has ended.
  void end_interval(Drain* drain);
  /// From now on there are no records at all, for this cause; kUnknown: there are again.
  void set_blind(GapCause cause);
  /// Where no interval ends, about as often: the process may be killed in what is not recorded.
  void go_on() { tell_gap(false); }
  /// Tells what has not been told.
  void finish(Drain* drain);

 private:
  enum class Graphs : uint8_t { kByNode = 0, kAsOne };

  void switch_off();
  bool wants_calls() const;
  uint64_t take_spared_ns(const RecordCounts& now, uint64_t threads_cpu_ns);
  Usage take_usage(Drain* drain);
  uint32_t interval_at(uint64_t now_ns) const;
  const char* wanted_gap() const;
  void start_gap(uint64_t start);
  void tell_gap(bool is_end);
  void tell_dropped();
  void tell_step();
  void tell_cost(const Drain& drain);

  const Client* client_ = nullptr;
  bool has_been_on_ = false;
  Wanted wanted_ = {};
  Graphs graphs_ = Graphs::kByNode;
  bool are_graphs_on_ = false;
  bool is_on_ = false;
  bool has_calls_on_ = false;
  GapCause blind_ = GapCause::kUnknown;
  bool has_failed_ = false;  ///< kinds could not be switched on again
  Watchdog watchdog_;
  RecordCounts counts_;          ///< at the end of the last interval
  Usage sums_ = {};              ///< at the end of the last interval; elapsed_ns: when that was
  uint64_t gap_ticks_ = 0;       ///< start of what was not told yet
  int worker_ = 0;               ///< whose CPU time is in sums_
  uint64_t missing_[3] = {};     ///< of Missing by cause, at the end of the last interval
  uint64_t interval_ticks_ = 0;  ///< which was then
  bool has_untold_step_ = false;
  const char* gap_ = nullptr;  ///< what is not recorded; null: all is
  uint32_t gap_intervals_ = 0;
  uint64_t cost_told_ns_ = 0;
  uint64_t day_ms_ = 0;  ///< the time of day is so far ahead of CLOCK_MONOTONIC
  char cost_text_[kCostTextBytes] = {};
};

}  // namespace aon::cupti
