#include "cupti/kinds.h"

#include <stdio.h>
#include <string.h>

#include <span>

#include "cupti/calls.h"

namespace aon::cupti {
namespace {

struct NamedKind {
  Kind kind;
  const char* name;
};
constexpr NamedKind kKinds[] = {{Kind::kMemcpy, "copies"},
                                {Kind::kMemcpy2, "copies between devices"},
                                {Kind::kMemset, "sets of memory"},
                                {Kind::kSynchronization, "waiting"},
                                {Kind::kOverhead, "overhead"}};
/// Of the program's calls: without records of these there are none of ids.
constexpr NamedKind kExternalIds = {Kind::kExternalCorrelation, "external correlation ids"};

using SetCall = Code (*)(const Client& client, uint32_t function, uint8_t enable);

/// How many functions could not be set.
struct Refused {
  uint32_t count = 0;
  bool are_all = true;
};

/// `refused` null: nobody wants to know what the version lacks, so it is not asked.
void set_calls(const Client& client, int32_t domain, SetCall set, std::span<const Call> calls,
               uint8_t enable, Refused* refused) {
  for (const Call& call : calls) {
    for (const uint32_t function : {call.id, call.per_thread_id}) {
      if (function == 0) continue;
      if (refused != nullptr && !is_known_call(client, domain, function)) continue;
      const bool is_set = set(client, function, enable) == kSuccess;
      if (refused == nullptr) continue;
      refused->are_all &= !is_set;
      refused->count += is_set ? 0 : 1;
    }
  }
}

void set_all_calls(const Client& client, uint8_t enable, Refused* refused) {
  const Backend& backend = *client.backend;
  set_calls(client, kDriverDomain, backend.set_driver_call, kDriverCalls, enable, refused);
  set_calls(client, kRuntimeDomain, backend.set_runtime_call, kRuntimeCalls, enable, refused);
}

void enable_calls(const Client& client, MissingKinds* missing) {
  Refused refused;
  set_all_calls(client, 1, missing != nullptr ? &refused : nullptr);
  if (refused.count == 0) return;
  char text[48] = "calls of CUDA";
  if (!refused.are_all) snprintf(text, sizeof text, "calls of CUDA (%u functions)", refused.count);
  add_missing(missing, text);
}

void enable(const NamedKind& kind, const Client& client, MissingKinds* missing) {
  if (client.backend->enable(client, kind.kind) != kSuccess) add_missing(missing, kind.name);
}

}  // namespace

bool is_known_call(const Client& client, int32_t domain, uint32_t function) {
  const char* name = nullptr;
  return client.cupti.get_callback_name == nullptr ||
         client.cupti.get_callback_name(domain, function, &name) == kSuccess;
}

void add_missing(MissingKinds* missing, const char* name) {
  if (missing == nullptr) return;
  const size_t used = strlen(missing->text);
  snprintf(missing->text + used, sizeof missing->text - used, "%s%s", used != 0 ? ", " : "", name);
}

void enable_graphs(const Client& client, MissingKinds* missing) {
  enable({Kind::kGraphTrace, "graphs"}, client, missing);
}

void disable_graphs(const Client& client) { client.backend->disable(client, Kind::kGraphTrace); }

Code enable_kinds(const Client& client, bool has_calls, MissingKinds* missing) {
  const Code code = client.backend->enable(client, Kind::kConcurrentKernel);
  if (code != kSuccess) return code;
  for (const NamedKind& kind : kKinds) enable(kind, client, missing);
  if (!has_calls) return kSuccess;
  enable_calls(client, missing);
  enable(kExternalIds, client, missing);
  return kSuccess;
}

void switch_calls(const Client& client, bool is_on) {
  set_all_calls(client, is_on ? 1 : 0, nullptr);
}

void disable_kinds(const Client& client, bool has_calls) {
  if (has_calls) {
    client.backend->disable(client, kExternalIds.kind);
    set_all_calls(client, 0, nullptr);
  }
  for (const NamedKind& kind : kKinds) client.backend->disable(client, kind.kind);
  client.backend->disable(client, Kind::kConcurrentKernel);
}

}  // namespace aon::cupti
