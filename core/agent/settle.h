/// Under which name an agent records: its node's, or NODE~2, NODE~3, ... beside agents of the same
/// launch and node that it cannot meet, as ranks have them in containers with a /tmp of their own
/// each. Two of one name would write over each other's spool.
/// Thread: one, before there are others.   Cost: a few file operations.
#pragma once

#include <optional>

#include "core/agent/config.h"
#include "core/base/lease.h"

namespace aon::agent {

/// Sets `node` and `folder`, and takes the lease of that name; nullopt: not to be had yet, for an
/// earlier agent of ours still finishes, or not at all.
std::optional<Lease> settle_node(Config* config);

}  // namespace aon::agent
