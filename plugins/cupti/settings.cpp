#include "cupti/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "cupti/pool.h"

namespace aon::cupti {
namespace {

constexpr long kLeastMemoryMiB = 2;

/// Null: it is not set.
const char* value_of(const char* name) {
  const char* text = getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

[[gnu::format(printf, 2, 3)]] void add_remark(Settings* settings, const char* format, ...) {
  char* remark = settings->remark;
  size_t used = strlen(remark);
  if (used != 0)
    used += static_cast<size_t>(snprintf(remark + used, Settings::kMaxRemark - used, "; "));
  if (used >= Settings::kMaxRemark) return;
  va_list values;
  va_start(values, format);
  vsnprintf(remark + used, Settings::kMaxRemark - used, format, values);
  va_end(values);
}

struct Choice {
  const char* name;
  const char* first;  ///< the default
  const char* second;
  const char* third = nullptr;
};

/// Which of its values it has: 0, 1 or 2.
uint8_t choose(const Choice& choice, Settings* settings) {
  const char* text = value_of(choice.name);
  if (text == nullptr || strcmp(text, choice.first) == 0) return 0;
  if (strcmp(text, choice.second) == 0) return 1;
  if (choice.third != nullptr && strcmp(text, choice.third) == 0) return 2;
  add_remark(settings, "%s=%.40s is none of %s, %s%s%s: it is %s", choice.name, text, choice.first,
             choice.second, choice.third != nullptr ? ", " : "",
             choice.third != nullptr ? choice.third : "", choice.first);
  return 0;
}

/// MiB that the unit behind a number stands for, as of --memory; none: one. 0: it is no such unit.
long mib_of_unit(const char* unit) {
  if (*unit == '\0') return 1;
  const bool is_mib = *unit == 'M' || *unit == 'm';
  if (!is_mib && *unit != 'G' && *unit != 'g') return 0;
  ++unit;
  if (*unit == 'i') ++unit;
  if (*unit == 'B' || *unit == 'b') ++unit;
  if (*unit != '\0') return 0;
  return is_mib ? 1 : 1024;
}

void read_memory(Settings* settings) {
  const char* text = value_of("AON_CUPTI_MEMORY");
  if (text == nullptr) return;
  constexpr long kMost = kMaxBuffers;
  char* end = nullptr;
  const long number = strtol(text, &end, 10);
  while (*end == ' ') ++end;
  const long unit_mib = end != text ? mib_of_unit(end) : 0;
  const long asked_mib = std::clamp(number, -1L, kMost + 1) * unit_mib;
  if (unit_mib != 0)
    settings->memory_mib = static_cast<uint32_t>(std::clamp(asked_mib, kLeastMemoryMiB, kMost));
  if (unit_mib == 0 || asked_mib != static_cast<long>(settings->memory_mib))
    add_remark(settings, "AON_CUPTI_MEMORY=%.40s is no number of MiB from %ld to %ld: it is %u",
               text, kLeastMemoryMiB, kMost, settings->memory_mib);
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.mode =
      static_cast<Mode>(choose({"AON_CUPTI_MODE", "exclusive", "yield", "off"}, &settings));
  settings.refuses_v2 = choose({"AON_CUPTI_API", "v2", "v1"}, &settings) != 0;
  settings.wanted.has_calls = choose({"AON_CUPTI_CALLS", "1", "0"}, &settings) == 0;
  settings.wanted.has_graph_nodes = choose({"AON_CUPTI_GRAPH", "graph", "node"}, &settings) != 0;
  read_memory(&settings);
  return settings;
}

}  // namespace aon::cupti
