/// The events that the perf provider counts when the user chose some (--events): software events
/// as always, and the chosen ones in place of the hardware events. aon-run has made numbers of the
/// names: TYPE/CONFIG/CONFIG1/CONFIG2/EXCLUDE/NAME, separated by commas.
/// Thread: the provider's.   Cost: strings and a few opened events, once.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "perf/kernel.h"
#include "perf/table.h"

namespace aon::perf {

constexpr size_t kMaxBorderEvents = 4;

class ChosenEvents {
 public:
  /// `text`: the list; empty: the default set. What is no event is left out, see unknown().
  explicit ChosenEvents(const std::string& text);
  ChosenEvents(const ChosenEvents&) = delete;
  ChosenEvents& operator=(const ChosenEvents&) = delete;

  /// Lives as long as this.
  std::span<const EventType> types() const { return types_; }
  bool is_default() const { return is_default_; }
  /// What was asked for and is no event, separated by ", ".
  const std::string& unknown() const { return unknown_; }

  /// Takes off what each thread reads itself at the borders of its calls (docs/counters.md): the
  /// first four hardware events, if this machine lets programs read them. Counted twice they would
  /// take turns on the PMU. Returns their names.
  std::string leave_to_threads(const Kernel& kernel);

 private:
  void add(const std::string& item);
  void note_unknown(const std::string& item);

  std::deque<std::string> names_;
  std::vector<EventType> types_;
  std::string unknown_;
  bool is_default_ = true;
};

}  // namespace aon::perf
