/// Calls of CUDA of one process by the external correlation ids that the program gave them, and the
/// work that these launched.
/// Thread: one.   Cost: kMaxRows rows; 50 ns per call with ids, some ns per piece of its work.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "writers/devices/calls.h"
#include "writers/devices/devices.h"

namespace aon::writers::devices {

/// An id of a call, by that call's own id and begin.
struct CallId {
  uint32_t correlation;
  ExternalKind kind;
  uint64_t start_ns;
  uint64_t id;

  bool operator<(const CallId& other) const {
    return correlation != other.correlation ? correlation < other.correlation
                                            : start_ns < other.start_ns;
  }
  bool is_before(const Call& call) const {
    return correlation != call.correlation ? correlation < call.correlation
                                           : start_ns < call.start_ns;
  }
  /// Of the call, or of one inside of it that has the same correlation id.
  bool is_of(const Call& call) const {
    return correlation == call.correlation && start_ns >= call.start_ns && start_ns <= call.end_ns;
  }
};

class ExternalIdTotals {
 public:
  static constexpr size_t kMaxRows = 4096;  ///< the first ones

  void clear() {
    rows_.clear();
    current_.clear();
    left_out_call_count_ = 0;
  }

  /// Whose ids and work come now.
  void begin_call() { current_.clear(); }
  /// Another id of a kind that the call has is that of the call inside of it, and the same.
  void add(const CallId& id);
  void add_work(uint64_t duration_ns);

  /// Of the process `group`, by kind and id.
  std::vector<ExternalIdRow> rows(uint32_t group) const;
  /// Calls with an id that has no row.
  uint64_t left_out_call_count() const { return left_out_call_count_; }

 private:
  using Key = std::pair<ExternalKind, uint64_t>;
  std::map<Key, ExternalIdRow> rows_;
  std::vector<std::pair<ExternalKind, ExternalIdRow*>> current_;  ///< null: it has no row
  uint64_t left_out_call_count_ = 0;
};

}  // namespace aon::writers::devices
