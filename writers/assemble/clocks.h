/// The clocks of the job's nodes, brought to that of one of them (docs/clocks.md). Internal to
/// writers/assemble.
/// Thread: one.   Cost: core/clock/cluster_clock.h.
#pragma once

#include <string>
#include <vector>

#include "writers/assemble/model.h"
#include "writers/waits/waits.h"

namespace aon::writers {

/// Fills JobModel::clocks and, of the model, cluster, reference_node and clock_error_ns. Needs
/// groups.
void build_clocks(JobModel* parts);

/// Raises the bounds of pairs of nodes whose messages and collectives say that they were too small.
/// Returns a line for each.
std::vector<std::string> cover_violations(const ClockViolations& violations, Model* model);

/// What is not known of the clocks, and how to get it.
std::vector<std::string> clock_remarks(const JobModel& parts);

}  // namespace aon::writers
