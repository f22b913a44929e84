/* A provider that does not come back from the function that HANG_IN names in the environment, or
   once so many seconds late as HANG_S says. */
#include <aon/provider.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int self_object;

static void hang_in(const char* function) {
  static int has_hung;
  const char* wanted = getenv("HANG_IN");
  const char* seconds = getenv("HANG_S");
  if (has_hung || wanted == NULL || strcmp(wanted, function) != 0) return;
  has_hung = 1;
  if (seconds != NULL) sleep((unsigned)atoi(seconds));
  while (seconds == NULL) pause();
}

static aon_status start(struct aon_core* core, const struct aon_core_api* api, aon_host host,
                        const char* config, struct aon_provider** self) {
  (void)core;
  (void)api;
  (void)host;
  (void)config;
  hang_in("start");
  *self = (struct aon_provider*)&self_object;
  return AON_OK;
}

static void tick(struct aon_provider* p, uint64_t now_ticks) {
  (void)p;
  (void)now_ticks;
  hang_in("tick");
}

static void stop(struct aon_provider* p) {
  (void)p;
  hang_in("stop");
}

const struct aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(struct aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 100,
    .name = "hanging",
    .description = "does not come back (a test)",
    .start = start,
    .stop = stop,
    .tick = tick,
};
