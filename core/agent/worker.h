/// The worker: the process that does the agent's work and may be killed at any moment. Forked by
/// the keeper, so everything the last worker left is open and in place.
///
///     drain thread    (main)  server, drainer, launch end
///     encode thread           encoder
///     bell thread             asleep until a process rings (bell.h)
///     housekeeping thread     clocks, usage, budget, providers
///     two of core/cluster     pings of other nodes' agents, where the launch has any
///
/// Cost: asleep, 10 to 200 wake-ups a second, and one for each time that a burst wakes it.
#pragma once

#include <vector>

#include "core/agent/config.h"
#include "core/agent/handover.h"
#include "core/base/unique_fd.h"

namespace aon::agent {

struct WorkerInputs {
  const Config* config;
  int listen_fd;
  int state_fd;
  int staging_fd;
  int bell_fd;
  int folder_fd;
  UniqueFd keeper_socket;
  std::vector<Kept>* kept;  ///< of this process: taken
};

/// Runs until the launch is over and everything is in the spool. Returns the exit code: 0 done.
int run_worker(WorkerInputs inputs);

}  // namespace aon::agent
