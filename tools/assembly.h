/// From the command's options to the assembler. Several directories, as a launcher without a common
/// id leaves them (one per node), are joined first (joining.h).
/// Thread: one.   Cost: that of the assembler.   Errors: kBusy when another assembler is at work.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "tools/command.h"

namespace aon::tools {

/// What is left to do for an archive whose spool was dropped before its maker was killed.
/// Errors: kBusy; kIo where the folder cannot be written to.
Status complete_dropped(const std::string& dir);

/// Says what is to be warned of, but for what it returns: failures of writers, of which another
/// assembly may do better. The rest of the result is in its place.
Result<std::vector<std::string>> assemble_job(const FinalizeOptions& options);

}  // namespace aon::tools
