/// The keeper: the agent's first process. It holds what must not be lost with a worker, starts the
/// worker, starts another when it dies, and makes the archive when the last one is done.
///
///     starting --fork--> serving --worker killed--> serving (next worker, same descriptors)
///                           |--worker exits 0--> assembling --finalize ends--> Done, exit
///                           |--SIGTERM--> passed on to the worker, which finishes early
///
/// Thread: one; it never touches a ring, a record or the network.   Cost: asleep, except for a
/// lease beat every two seconds.
#pragma once

#include <optional>
#include <string>

#include "core/agent/config.h"
#include "core/base/lease.h"

namespace aon::agent {

/// Runs the agent until its launch is over. `lease`: that of its node (settle.h), if it has it yet.
/// Returns its exit code.
int run_keeper(const Config& config, std::optional<Lease> lease);

/// Where the agent logs, in the job directory.
std::string log_path(const Config& config);
/// One in which nothing was said goes, before those who wait for the files are told.
void remove_empty_log(const Config& config);

}  // namespace aon::agent
