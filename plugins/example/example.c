/* The smallest provider: one metric of the node, the load average, four times a second.
 *
 * How to write your own:
 *   1. Copy this folder to plugins/NAME, and add NAME to the list in plugins/CMakeLists.txt. The
 *      file needs <aon/provider.h> and links against nothing of ours.
 *   2. It runs in the agent, AON_HOST_NODE, and reads something of the machine, or of processes
 *      from outside. AON_HOST_PROCESS is reserved: no host loads it in this version. What must be
 *      called by, or sit inside, the profiled program is a shim of its own (<aon/writer.h>,
 *      plugins/nvtx).
 *   3. start() finds out whether it can work at all. If not, it says so by set_state() - what is
 *      missing, and the exact command that would help - and returns AON_UNAVAILABLE. That is a
 *      normal result, not an error; nothing may be left running or open then.
 *   4. Define metrics once (a unit each), give samples from tick(). Never sleep or wait in here.
 *   5. stop() closes and frees all that start() made.
 *   6. Three tests: unit, replay (recorded input, expected samples), and "not available".
 * Try it: aon-run --providers example,mpi ./program; the curve is in profile.h5, in the group
 * /series/node_0/example.
 * Checked by: tests/unit/provider, tests/abi/provider. */
#include <aon/provider.h>
#include <stdio.h>
#include <stdlib.h>

struct aon_provider {
  struct aon_core* core;
  const struct aon_core_api* api;
  uint32_t load_metric;
};

static int read_load(double* load) {
  FILE* file = fopen("/proc/loadavg", "re");
  if (file == NULL) return 0;
  const int fields = fscanf(file, "%lf", load);
  fclose(file);
  return fields == 1;
}

static aon_status start(struct aon_core* core, const struct aon_core_api* api, aon_host host,
                        const char* config, struct aon_provider** self) {
  (void)host;   /* only one is declared below */
  (void)config; /* no options; <aon/provider_config.h> reads them (C++) */
  double load;
  if (!read_load(&load)) {
    api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, "/proc/loadavg cannot be read",
                   "mount -t proc proc /proc");
    return AON_UNAVAILABLE;
  }
  struct aon_provider* p = malloc(sizeof(*p));
  if (p == NULL) return AON_FAILED;
  p->core = core;
  p->api = api;
  p->load_metric =
      api->define_metric(core, AON_PROCESS_NODE, "load", "1",
                         "runnable tasks, mean of the last minute", AON_METRIC_ABSOLUTE);
  api->set_state(core, AON_PROCESS_NODE, AON_STATE_ON, "", "");
  *self = p;
  return AON_OK;
}

static void tick(struct aon_provider* p, uint64_t now_ticks) {
  double load;
  if (read_load(&load)) {
    p->api->sample(p->core, AON_PROCESS_NODE, p->load_metric, now_ticks, load, 0, 0);
  }
}

static void stop(struct aon_provider* p) { free(p); }

const struct aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(struct aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 250,
    .name = "example",
    .description = "load average of the node (an example)",
    .start = start,
    .stop = stop,
    .tick = tick,
};
