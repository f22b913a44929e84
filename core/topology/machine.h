/// The XML of this machine, as the spool gets it. hwloc takes 5 to 100 ms for it (in a virtual
/// machine each word of a PCI device's configuration is a trap), which on a full node a rank waits
/// for. So an agent leaves it in the user's runtime folder for those that follow.
///
/// What is kept counts only for the machine it was made of: same boot, host, hwloc, CPUs and memory
/// that the control group allows, PCI devices, network adapters, GPUs and their drivers. With any
/// variable of hwloc's (HWLOC_XMLFILE, ...) nothing is kept or taken.
///
/// Owner: the agent.   Thread: any.   Cost: some 0.2 ms where it is kept, else that of load().
#pragma once

#include <functional>
#include <string>

#include "core/base/result.h"

namespace aon::topology {

/// `folder`: 0700 and the user's own; empty: none. `cpus`: which ones the control group allows, in
/// any form. Without the control group's path, which is a job's and not the machine's.
/// Errors: those of Topology::load() and xml().
Result<std::string> machine_xml(const std::string& folder, const std::string& cpus);

/// Its parts, for tests: what hwloc's answer depends on, as a text; and `discover`'s answer, from
/// `folder` where an earlier one for `key` is kept there.
std::string machine_key(const std::string& cpus);
Result<std::string> kept_xml(const std::string& folder, const std::string& key,
                             const std::function<Result<std::string>()>& discover);

}  // namespace aon::topology
