#include "core/runtime/provider_state.h"

#include <string.h>

#include "core/runtime/process.h"

namespace aon::runtime {

void tell_state(const char* provider, ProviderState state, const char* reason, const char* remedy) {
  constexpr uint32_t kPartBytes = 240;
  char text[3 * (kPartBytes + 1)] = {};
  uint32_t length = 0;
  for (const char* part : {provider, reason, remedy}) {
    const uint32_t bytes = static_cast<uint32_t>(strnlen(part, kPartBytes));
    memcpy(text + length, part, bytes);
    length += bytes + 1;
  }
  tell_text(state, text, length);
}

void tell_text(ProviderState state, const char* text, uint32_t bytes) {
  ProviderDefinition definition = {};
  definition.state = state;
  define(*process(), static_cast<uint32_t>(DefinitionType::kProvider), &definition,
         sizeof definition, text, bytes);
}

}  // namespace aon::runtime
