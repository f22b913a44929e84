/// What the runtime says of its own parts in the ledger, as a provider would.
/// Thread: any of an attached process; takes the definition lock.   Signal: no.
#pragma once

#include <aon/definition.h>

#include <cstddef>
#include <cstdint>

namespace aon::runtime {

/// Longer texts are cut.
void tell_state(const char* provider, ProviderState state, const char* reason, const char* remedy);

void tell_text(ProviderState state, const char* text, uint32_t bytes);

/// The same of a degraded part, in one constant "PROVIDER\0REASON\0REMEDY": takes little stack.
template <std::size_t kBytes>
void tell_degraded(const char (&text)[kBytes]) {
  tell_text(ProviderState::kDegraded, text, kBytes);
}

}  // namespace aon::runtime
