/// Where the agents of a launch find each other when the job directory is on a disk of each node: a
/// folder of the launch below one that all nodes see (--rendezvous, ~/.aon/launches by default). It
/// holds addresses (address.h) and nothing of the job, and goes with the last agent.
///
/// Thread: any.   Cost: a few file operations.
#pragma once

#include <string>

#include "core/base/result.h"

namespace aon::cluster {

/// Name of the address of the agent that takes the spools of the others (core/delivery).
constexpr char kReceiverName[] = ".receiver";

/// The launch's folder below `rendezvous`; "" when nobody needs one: `rendezvous` is empty, or the
/// job directory is on a file system that nodes share.
std::string meeting_folder(const std::string& rendezvous, const std::string& launch_id,
                           const std::string& job_folder);

/// False for file systems that are known to be on a network.
bool is_on_disk_of_node(const std::string& folder);

/// Makes it and those above, 0700; what launches left that were killed a week ago goes.
/// Errors: kInvalid when it is not this user's alone; kIo.
Status make_meeting_folder(const std::string& meeting);
/// Removes it when nobody has an address in it any more.
void leave_meeting_folder(const std::string& meeting);

}  // namespace aon::cluster
