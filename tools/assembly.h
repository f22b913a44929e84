/// From the command's options to the assembler. Several directories, as a launcher without a common
/// id leaves them (one per node), are joined first (joining.h).
/// Thread: one.   Cost: that of the assembler.   Errors: kBusy when another assembler is at work.
#pragma once

#include "core/base/result.h"
#include "tools/command.h"

namespace aon::tools {

/// What is left to do for an archive whose spool was dropped before its maker was killed.
/// Errors: kBusy; kIo where the folder cannot be written to.
Status complete_dropped(const std::string& dir);

Status assemble_job(const FinalizeOptions& options);

}  // namespace aon::tools
