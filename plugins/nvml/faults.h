/// What failed, by query and GPU, and the one line that the ledger has of it all.
///
///     works --not supported, no permission--> off
///     works --3 other errors in a row, or 10 that pass (timeout, in use)--> off
///     any query: the GPU is lost or needs a reset --> all of that GPU is off
///
/// Of a query that goes on, the share of readings that failed: its series are short by so much.
/// Thread: the poller's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/output.h"
#include "nvml/interface.h"

namespace aon::nvml {

class Faults {
 public:
  /// Notes what a query gave. False: it is not to be asked again.
  bool note(uint32_t gpu, const std::string& query, uint32_t code);
  bool is_lost(uint32_t gpu) const { return lost_.count(gpu) != 0; }

  /// Adds what failed behind what `state` says already. `labels` are the GPUs' names.
  void tell(const std::vector<std::string>& labels, node::StateText* state) const;

 private:
  void tell_failed(const std::vector<std::string>& labels, node::StateText* state) const;

  struct Row {
    uint64_t count = 0;
    uint64_t failed_count = 0;
    uint32_t errors_in_a_row = 0;
    uint32_t code = kSuccess;
    bool is_off = false;
  };

  std::map<std::pair<uint32_t, std::string>, Row> rows_;  ///< GPU, query
  std::map<uint32_t, uint32_t> lost_;                     ///< GPU -> code
};

}  // namespace aon::nvml
