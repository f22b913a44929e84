// The network provider: see node/network.h.
#include "node/entry.h"
#include "node/network.h"

extern "C" const aon_provider_api aon_provider_v1 =
    aon::node::provider_table<aon::node::NetworkSession>(
        "network", "bytes, packets and errors of each network card", aon::node::kNetworkPeriodMs);
