// The membw provider: see node/membw.h.
#include "node/entry.h"
#include "node/membw.h"

extern "C" const aon_provider_api aon_provider_v1 =
    aon::node::provider_table<aon::node::MembwSession>(
        "membw", "bytes read and written by the memory controllers of each socket",
        aon::node::kMembwPeriodMs);
