/// What the runtime says of its own parts in the ledger, as a provider would.
/// Thread: any of an attached process; takes the definition lock.   Signal: no.
#pragma once

#include <aon/definition.h>

namespace aon::runtime {

/// Longer texts are cut.
void tell_state(const char* provider, ProviderState state, const char* reason, const char* remedy);

}  // namespace aon::runtime
