/// From the command's options to the assembler. Several directories, as a launcher without a common
/// id leaves them (one per node), are joined first (joining.h).
/// Thread: one.   Cost: that of the assembler.   Errors: kBusy when another assembler is at work.
#pragma once

#include "core/base/result.h"
#include "tools/command.h"

namespace aon::tools {

/// The archive of `dir` is complete: the marks of the nodes in it go.
void forget_done_nodes(const std::string& dir);

/// What the ledger of `dir` says in short, for a terminal; empty without a ledger.
std::string summary_of(const std::string& dir);
/// Writes it to summary.txt: an aon-run that waits reads it there once its node's mark has gone.
void leave_summary(const std::string& dir);

Status assemble_job(const FinalizeOptions& options);

}  // namespace aon::tools
