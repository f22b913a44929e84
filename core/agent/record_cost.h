/// What a record costs the thread that writes it, measured here and now. The two reads of the clock
/// are most of it; how much of the rest they hide is the processor's matter: an AMD EPYC stores a
/// record while it reads the clock, an Intel Xeon waits (docs/decisions/020-clock-of-intel.md).
///
/// Thread: any.   Cost: 0.2 ms of CPU time where the clock is the TSC.
#pragma once

#include "core/clock/snapshot.h"

namespace aon::agent {

/// In nanoseconds of the writing thread, each the least of some rounds.
struct RecordCosts {
  double call_ns;   ///< a call, with two reads of the clock
  double event_ns;  ///< a record with one
};

/// By records as aon/writer.h writes them, into memory of our own.
RecordCosts measure_record_costs(clock::TickSource source) noexcept;

}  // namespace aon::agent
