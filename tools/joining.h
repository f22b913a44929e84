/// Whether job directories may be those of one launch, and joining them: the node folders of the
/// others are hard-linked into the first one's spool (copied across file systems), each with a note
/// of where it came from, so that joining again adds only what is new there.
///
/// What cannot be one launch: one host in two directories (a launch has one directory per node),
/// one rank in two, or two sizes of the world. What is not known (no rank, size 0) says nothing.
/// Thread: one.   Cost: the definitions of all directories are read.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace aon::tools {

/// Looks only.   Errors: kInvalid names both directories and why they cannot be one launch; kIo.
Status check_one_launch(const std::vector<std::string>& dirs);

/// Joins all of `dirs` into the first, whose assembly lease the caller holds: what an interrupted
/// join left there goes.   Errors: kIo, kInvalid.
Status join_directories(const std::vector<std::string>& dirs);

}  // namespace aon::tools
