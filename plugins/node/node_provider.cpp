// The node provider: see node/node.h.
#include "node/entry.h"
#include "node/node.h"

extern "C" const aon_provider_api aon_provider_v1 =
    aon::node::provider_table<aon::node::NodeSession>(
        "node", "memory, load and clocks of the node, and the job's control group",
        aon::node::kNodePeriodMs);
