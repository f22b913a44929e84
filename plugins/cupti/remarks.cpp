#include "cupti/remarks.h"

#include <stdio.h>
#include <string.h>

namespace aon::cupti {
namespace {

size_t append(char* text, size_t used, const char* more) {
  const size_t room = Remarks::kMaxText - used;
  const int wanted = snprintf(text + used, room, "%s%s", used != 0 ? "; " : "", more);
  const auto bytes = static_cast<size_t>(wanted);
  return used + (bytes < room ? bytes : room - 1);
}

}  // namespace

void Remarks::set(Remark remark, ProviderState state, const char* reason, const char* remedy) {
  Entry& entry = entries_[static_cast<uint32_t>(remark)];
  entry.state = state;
  snprintf(entry.reason, sizeof entry.reason, "%s", reason);
  snprintf(entry.remedy, sizeof entry.remedy, "%s", remedy);
}

ProviderState Remarks::state() const {
  ProviderState worst = ProviderState::kOn;
  for (const Entry& entry : entries_) {
    if (entry.state == ProviderState::kOff) return ProviderState::kOff;
    if (entry.state == ProviderState::kDegraded) worst = ProviderState::kDegraded;
  }
  return worst;
}

size_t Remarks::write_reasons(char* text) const {
  size_t used = 0;
  text[0] = '\0';
  for (const Entry& entry : entries_) {
    if (entry.reason[0] != '\0') used = append(text, used, entry.reason);
  }
  return used;
}

size_t Remarks::write_remedies(char* text) const {
  size_t used = 0;
  text[0] = '\0';
  for (const Entry& entry : entries_) {
    if (entry.remedy[0] == '\0' || strstr(text, entry.remedy) != nullptr) continue;
    used = append(text, used, entry.remedy);
  }
  return used;
}

}  // namespace aon::cupti
