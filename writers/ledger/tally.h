/// What the pass over the events found of one location; the ledger adds these up. A value.
#pragma once

#include <aon/definition.h>
#include <aon/record.h>

#include <cstdint>
#include <optional>

#include "core/spool/format.h"
#include "writers/writer.h"

namespace aon::writers {

constexpr size_t kParadigmCount = static_cast<size_t>(Paradigm::kNvtx) + 1;

/// Records that are missing for one reason, and between which times.
struct LossTally {
  uint64_t count = 0;
  uint64_t start_ns = UINT64_MAX;
  uint64_t end_ns = 0;
};

struct LocationTally {
  const Location* location = nullptr;
  uint64_t decoded = 0;                       ///< counted records that were read
  uint64_t by_paradigm[kParadigmCount] = {};  ///< of these, by the paradigm of their region
  uint64_t samples = 0;                       ///< of these, kSample
  uint64_t call_samples = 0;                  ///< of these, kCallSample
  uint64_t counters = 0;                      ///< of these, kCounters
  uint64_t inexact_counters = 0;              ///< of these, with a counter off the PMU
  LossTally lost[kLossReasonCount];           ///< by LossReason
  uint64_t damaged_blocks = 0;
  std::optional<uint64_t> agents_count;  ///< committed + refused + cut

  uint64_t lost_count() const {
    uint64_t sum = 0;
    for (const LossTally& loss : lost) sum += loss.count;
    return sum;
  }
  /// Counted records that were written and refused. Where the agent saw the process's end it is
  /// the agent's own count, so that it can tell of an error in the other two; else their sum.
  uint64_t emitted() const { return agents_count.value_or(decoded + lost_count()); }
  bool adds_up() const { return emitted() == decoded + lost_count(); }
};

/// Of the threads of processes; samples that the agent took and lost stand apart, because the law
/// (emitted = spooled + lost) is about what programs emitted.
inline bool is_thread_of_process(const Location& location) {
  return location.type == LocationType::kThread && location.process != spool::kNodeProcess;
}

/// `location`: its index in Model::locations.
void save_tally(StateOut* out, const LocationTally& tally, uint32_t location);
Status load_tally(StateIn* in, const Model& model, LocationTally* tally);

}  // namespace aon::writers
