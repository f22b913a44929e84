// The process provider: see node/process.h.
#include "node/entry.h"
#include "node/process.h"

extern "C" const aon_provider_api aon_provider_v1 =
    aon::node::provider_table<aon::node::ProcessSession>(
        "process", "memory and file-system bytes of each process", aon::node::kProcessPeriodMs);
