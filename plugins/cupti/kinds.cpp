#include "cupti/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace aon::cupti {
namespace {

struct NamedKind {
  Kind kind;
  const char* name;
};
constexpr NamedKind kKinds[] = {
    {Kind::kMemcpy, "copies"},         {Kind::kMemcpy2, "copies between devices"},
    {Kind::kMemset, "sets of memory"}, {Kind::kSynchronization, "waiting"},
    {Kind::kOverhead, "overhead"},     {Kind::kExternalCorrelation, "external correlation"}};

// Ids of cupti_driver_cbid.h and cupti_runtime_cbid.h, which never change. What starts work or
// waits for it, and nothing that programs call in passing.
constexpr uint32_t kDriverCalls[] = {
    307,  // cuLaunchKernel
    652,  // cuLaunchKernelEx
    477,  // cuLaunchCooperativeKernel
    514,  // cuGraphLaunch
    276,  // cuMemcpyHtoD
    277,  // cuMemcpyHtoDAsync
    278,  // cuMemcpyDtoH
    279,  // cuMemcpyDtoHAsync
    281,  // cuMemcpyDtoDAsync
    305,  // cuMemcpy
    306,  // cuMemcpyAsync
    216,  // cuMemsetD8Async
    220,  // cuMemsetD32Async
    126,  // cuStreamSynchronize
    17,   // cuCtxSynchronize
    121,  // cuEventSynchronize
};
constexpr uint32_t kRuntimeCalls[] = {
    211,  // cudaLaunchKernel
    214,  // cudaLaunchKernel of per-thread streams
    430,  // cudaLaunchKernelExC
    269,  // cudaLaunchCooperativeKernel
    311,  // cudaGraphLaunch
    31,   // cudaMemcpy
    41,   // cudaMemcpyAsync
    49,   // cudaMemset
    51,   // cudaMemsetAsync
    131,  // cudaStreamSynchronize
    165,  // cudaDeviceSynchronize
    137,  // cudaEventSynchronize
};

void set_calls(const Functions& cupti, uint8_t enable) {
  if (cupti.enable_driver_call == nullptr || cupti.enable_runtime_call == nullptr) return;
  for (const uint32_t function : kDriverCalls) cupti.enable_driver_call(function, enable);
  for (const uint32_t function : kRuntimeCalls) cupti.enable_runtime_call(function, enable);
}

void enable(const NamedKind& kind, const Backend& backend, const Functions& cupti,
            MissingKinds* missing) {
  if (backend.enable(cupti, kind.kind) == kSuccess) return;
  const size_t used = strlen(missing->text);
  snprintf(missing->text + used, sizeof missing->text - used, "%s%s", used != 0 ? ", " : "",
           kind.name);
}

bool is_value(const char* name, const char* value) {
  const char* text = getenv(name);
  return text != nullptr && strcmp(text, value) == 0;
}

}  // namespace

Wanted wanted_kinds() {
  return {.has_calls = !is_value("AON_CUPTI_CALLS", "0"),
          .has_graph_nodes = is_value("AON_CUPTI_GRAPH", "node")};
}

Code enable_kinds(const Backend& backend, const Functions& cupti, const Wanted& wanted,
                  MissingKinds* missing) {
  missing->text[0] = '\0';
  // Graphs as one exclude their nodes; the kind must be there before a graph is made.
  if (!wanted.has_graph_nodes) enable({Kind::kGraphTrace, "graphs"}, backend, cupti, missing);
  const Code code = backend.enable(cupti, Kind::kConcurrentKernel);
  if (code != kSuccess) return code;
  for (const NamedKind& kind : kKinds) enable(kind, backend, cupti, missing);
  if (cupti.enable_all_sync_records != nullptr) cupti.enable_all_sync_records(0);
  if (wanted.has_calls) set_calls(cupti, 1);
  return kSuccess;
}

void disable_kinds(const Backend& backend, const Functions& cupti, const Wanted& wanted) {
  if (wanted.has_calls) set_calls(cupti, 0);
  for (const NamedKind& kind : kKinds) backend.disable(cupti, kind.kind);
  backend.disable(cupti, Kind::kConcurrentKernel);
  if (!wanted.has_graph_nodes) backend.disable(cupti, Kind::kGraphTrace);
}

}  // namespace aon::cupti
