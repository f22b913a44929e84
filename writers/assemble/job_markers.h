/// Markers of what is known of a job without its events (writers/otf2/markers.h): processes that
/// did not come to their end, what the budget changed, agents that were replaced, clocks that were
/// set.
/// Thread: one.   Cost: proportional to definitions.
#pragma once

#include <cstddef>

#include "writers/assemble/model.h"
#include "writers/otf2/markers.h"

namespace aon::writers {

/// At most `most`, of the time that the archive shows. `is_snapshot`: the job runs on, so that the
/// end of a process was not seen says nothing.
otf2::Markers job_markers(const JobModel& parts, size_t most, bool is_snapshot);

}  // namespace aon::writers
