/// Who holds, or would take, CUPTI's subscription and the counters of GPUs.
///
/// CUPTI's subscription is a process's: what is in the environment decides about the next job, and
/// what is loaded in a process about that one. The counters are the GPU's: one client per node.
/// Only the client's own process knows whether it has subscribed; AON's ledger names the client,
/// where it met one.
/// Thread: one.
#pragma once

#include <string>
#include <vector>

#include "launcher/launch_id.h"
#include "tools/machine_check.h"
#include "tools/process_look.h"

namespace aon::tools {

/// What programs that are started from here would have.   Cost: reads files of LD_PRELOAD.
Check check_cupti_environment(const launcher::Environment& environment);

/// `hidden`: why other processes may be there that are not seen; "": none.
Check check_cupti_processes(const ProcessLook& look, const std::string& hidden);
Check check_counter_holders(const ProcessLook& look, const std::string& hidden);

/// What look_at_processes() is to look for.
Wanted wanted_of_gpus();

}  // namespace aon::tools
