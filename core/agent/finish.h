/// The end of a launch, as the keeper of one node sees it: its spool is complete, and the archive
/// is to be made once, from the spools of all nodes.
///
///     done --every node done or lost--> aon finalize --ok--> complete
///          --another one assembles, or still records--> waits, at most `--wait` seconds
///          --the mark is gone: the archive has this node--> complete
///
/// Whoever sees first that all are done or lost assembles (the lease of the assembly decides
/// between two), so it needs no leader that could be lost. A node whose directories are read late
/// only leads to the archive being made again with all of them.
/// Thread: the keeper's.   Errors: told in the outcome; the spool stays as it is.
#pragma once

#include <functional>

#include "core/agent/assemble.h"
#include "core/base/lease.h"

namespace aon::agent {

/// `spans_nodes`: while it waits for others the folder is free for a later agent of this node, so
/// `lease` is released first. `beat` is called every two seconds meanwhile.
AssembleOutcome finish_launch(const Config& config, bool spans_nodes, Lease* lease,
                              const std::function<void()>& beat);

}  // namespace aon::agent
