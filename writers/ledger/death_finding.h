/// Which rank died first, where a job ended by a signal: the others are killed by their launcher,
/// and what they waited for until then is no finding.
/// Thread: any.   Cost: one look at each process.
#pragma once

#include <span>
#include <string>

#include "core/clock/clock_map.h"
#include "writers/writer.h"

namespace aon::writers {

/// "rank 1 on n1 died first, of signal 11 (Segmentation fault)"; of ranks that were all ended from
/// outside (SIGTERM, SIGINT, SIGHUP), and of those that ended well, nothing. `clocks` by node.
std::string death_finding(const Model& model, std::span<const clock::ClockMap> clocks);

}  // namespace aon::writers
