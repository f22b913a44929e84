/// Which rank ended first, where a job was ended by one: the others are killed by their launcher,
/// and what they waited for until then is no finding.
/// Thread: any.   Cost: one look at each process.
#pragma once

#include <span>
#include <string>

#include "core/clock/clock_map.h"
#include "writers/writer.h"

namespace aon::writers {

/// "rank 1 on n1 ended first, by signal 11 (Segmentation fault)", or with an exit code, in a job
/// with MPI without MPI_Finalize. Of ranks that were ended from outside, and of those that ended
/// well, nothing; of one that was killed only if it is the only one; of a job without MPI whose
/// ranks all had one exit code nothing. `clocks` by node.
std::string death_finding(const Model& model, std::span<const clock::ClockMap> clocks);

}  // namespace aon::writers
