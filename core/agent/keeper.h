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

#include "core/agent/config.h"
#include "core/base/lease.h"

namespace aon::agent {

/// Runs the agent until its launch is over. `lease`: that of its node (settle.h), if it has it yet.
/// Returns its exit code.
int run_keeper(const Config& config, std::optional<Lease> lease);

}  // namespace aon::agent
