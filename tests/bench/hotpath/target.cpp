#include "tests/bench/hotpath/target.h"

// The body of each: it uses its parameters, and the compiler cannot merge it with the others.
#define HOTPATH_DEFINE(name)                                         \
  extern "C" int name(HOTPATH_PARAMETERS) {                          \
    asm volatile("" ::"r"(buffer), "r"(request), "r"(communicator)); \
    return count + datatype + peer + tag;                            \
  }

HOTPATH_DEFINE(hotpath_plain)
HOTPATH_DEFINE(hotpath_forward)
HOTPATH_DEFINE(hotpath_clock)
HOTPATH_DEFINE(hotpath_recorded)
HOTPATH_DEFINE(hotpath_counted)
HOTPATH_DEFINE(hotpath_sampled)
HOTPATH_DEFINE(hotpath_paused)
HOTPATH_DEFINE(hotpath_lttng)

extern "C" void hotpath_event(void** request) { asm volatile("" ::"r"(request)); }
