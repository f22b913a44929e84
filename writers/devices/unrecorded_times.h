/// When work of the devices of a process may be missing, by cause and for any of them.
/// Thread: one.   Cost: twice that of BlindTimes.
#pragma once

#include <vector>

#include "writers/devices/blind_times.h"
#include "writers/devices/devices.h"

namespace aon::writers::devices {

class UnrecordedTimes {
 public:
  void clear() {
    all_.clear();
    for (BlindTimes& times : by_cause_) times.clear();
  }
  void add(uint64_t begin_ns, uint64_t end_ns, GapCause cause) {
    all_.add(begin_ns, end_ns);
    by_cause_[static_cast<size_t>(cause)].add(begin_ns, end_ns);
  }
  /// To be called before what follows.
  void merge() {
    all_.merge();
    for (BlindTimes& times : by_cause_) times.merge();
  }
  const BlindTimes& all() const { return all_; }
  void add_rows(uint32_t group, std::vector<UnrecordedTime>* rows) const {
    for (size_t i = 0; i < kGapCauseCount; ++i) {
      const BlindTimes& times = by_cause_[i];
      if (times.all().empty()) continue;
      rows->push_back(
          {group, static_cast<GapCause>(i), times.all().size(), times.total_ns(), all_.total_ns()});
    }
  }

 private:
  BlindTimes all_;
  BlindTimes by_cause_[kGapCauseCount];
};

}  // namespace aon::writers::devices
