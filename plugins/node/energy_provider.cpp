// The energy provider: see node/energy.h.
#include "node/energy.h"
#include "node/entry.h"

extern "C" const aon_provider_api aon_provider_v1 =
    aon::node::provider_table<aon::node::EnergySession>(
        "energy", "joules of processor packages and their memory (RAPL)",
        aon::node::kEnergyPeriodMs);
