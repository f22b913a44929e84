// The same wrapper with LTTng-UST: one tracepoint at entry, one at exit.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tests/bench/hotpath/lttng_events.h"

#include <dlfcn.h>

#include "tests/bench/hotpath/target.h"

namespace {

using Function = int (*)(HOTPATH_PARAMETERS);
Function g_lttng;

[[gnu::constructor]] void find_function() {
  g_lttng = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "hotpath_lttng"));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int hotpath_lttng(HOTPATH_PARAMETERS) {
  lttng_ust_tracepoint(aon_bench, enter, peer, tag,
                       static_cast<unsigned>(reinterpret_cast<unsigned long>(communicator)),
                       static_cast<unsigned long>(count) * 8);
  const int result = g_lttng(HOTPATH_ARGUMENTS);
  lttng_ust_tracepoint(aon_bench, exit, reinterpret_cast<unsigned long>(request));
  return result;
}
