/// A process of its own that waits for the files, where aon-run may not stay as the program's
/// parent. Hydra takes the end of the socket PMI_FD for the end of a rank, and kills what is left
/// of the others when a rank is gone without MPI_Finalize: an aon-run that outlives its program
/// would be killed in its place, and the rank's exit code with it. Here the program takes the place
/// of aon-run, as everywhere but on the first rank of a node, and the launcher ends when the
/// waiter's stderr does.
///
/// Where a rank of several fails, hydra collects the status of those it kills while that stderr is
/// open, and ors them all: 15 in place of 6 for an abort. So the waiter lets go of it when a rank
/// enters MPI_Init, and gets one again from the first rank that has left MPI_Finalize
/// (aon/standing.h). A launch that fails in between ends without a word of the waiter's.
///
///     aon-run --fork--> (in between) --fork--> waiter, in a session of its own
///        '--execvp--> program
///
/// Thread: one.   Cost: two forks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace aon::launcher {

/// True when the launcher watches its ranks through PMI_FD: hydra and its like, not Slurm, which
/// kills what outlives a task.
bool launcher_watches_socket(const std::function<const char*(const char*)>& environment);

/// Where ranks tell the waiter about stderr. Without it the waiter holds its own all the time.
/// Errors: kUnavailable.
Result<UniqueFd> open_notices(const std::string& agent_socket);

/// Runs `wait` in the new process, with stderr and the descriptors `kept` only, and returns here.
/// Errors: kUnavailable when fork fails; nothing waits then.
Status start_waiter(const std::vector<int>& kept, const std::function<void()>& wait);

/// True when `fd` is readable or hung up, at the latest `timeout_ms` after the end of the program
/// whose pidfd `program` is (-1: after now). Does what is said on `notices`, where that is no -1.
bool wait_for_descriptor(int fd, int notices, int program, int timeout_ms);

}  // namespace aon::launcher
