/// From the command's options to the assembler: which spool folders belong to the job, the archive
/// made from them, and the spool dropped when asked for.
/// Thread: one.   Cost: that of the assembler.   Errors: its first; the directory is as before then.
#pragma once

#include "core/base/result.h"
#include "tools/command.h"

namespace aon::tools {

Status assemble_job(const FinalizeOptions& options);

}  // namespace aon::tools
