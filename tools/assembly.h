/// From the command's options to the assembler. Several directories, as a launcher without a common
/// id leaves them (one per node), are joined first: the node folders of the others are hard-linked
/// into the first one's spool (copied across file systems), each with a note of where it came from,
/// so that joining again changes nothing.
/// Thread: one.   Cost: that of the assembler.   Errors: kBusy when another assembler is at work.
#pragma once

#include "core/base/result.h"
#include "tools/command.h"

namespace aon::tools {

Status assemble_job(const FinalizeOptions& options);

}  // namespace aon::tools
