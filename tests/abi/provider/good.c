/* A provider as others would write it; each macro makes it bad, or new, in one way. */
#ifdef NO_SYMBOL
#define aon_provider_v1 aon_provider_v0
#endif
#ifdef FUTURE_SIZE
#define aon_provider_v1 declaration_of_today
#endif
#include <aon/provider.h>
#ifdef FUTURE_SIZE
#undef aon_provider_v1
#endif

struct aon_provider {
  struct aon_core* core;
  const struct aon_core_api* api;
  uint32_t metric;
};
static struct aon_provider self_object;

static aon_status start(struct aon_core* core, const struct aon_core_api* api, aon_host host,
                        const char* config, struct aon_provider** self) {
  (void)host;
  (void)config;
#ifdef START_FAILS
  api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, "no such device", "buy one");
  return AON_UNAVAILABLE;
#endif
  self_object.core = core;
  self_object.api = api;
  self_object.metric =
      api->define_metric(core, AON_PROCESS_NODE, "answer", "1", "", AON_METRIC_ABSOLUTE);
  *self = &self_object;
  return AON_OK;
}
static void tick(struct aon_provider* p, uint64_t ticks) {
  p->api->sample(p->core, AON_PROCESS_NODE, p->metric, ticks, 42, 0, 0);
}
static void stop(struct aon_provider* p) { (void)p; }

#if defined(BAD_ABI)
#define TABLE_ABI (AON_PROVIDER_ABI + 1)
#else
#define TABLE_ABI AON_PROVIDER_ABI
#endif
#if defined(SHORT_TABLE)
#define TABLE_SIZE (AON_PROVIDER_SIZE_V1 - 8)
#else
#define TABLE_SIZE sizeof(struct aon_provider_api)
#endif
#if defined(PROCESS_ONLY)
#define TABLE_HOSTS AON_HOST_PROCESS
#else
#define TABLE_HOSTS AON_HOST_NODE
#endif

#ifdef FUTURE_SIZE
/* Compiled against a later header whose table has grown. */
struct table_of_tomorrow {
  struct aon_provider_api today;
  void (*forked)(struct aon_provider*);
};
__attribute__((visibility("default"))) const struct table_of_tomorrow aon_provider_v1 = {
    .today = {.abi = AON_PROVIDER_ABI,
              .size = sizeof(struct table_of_tomorrow),
              .hosts = AON_HOST_NODE,
              .name = "future",
              .description = "from tomorrow",
              .start = start,
              .stop = stop,
              .tick = tick},
    .forked = stop};
#else
const struct aon_provider_api aon_provider_v1 = {.abi = TABLE_ABI,
                                                 .size = TABLE_SIZE,
                                                 .hosts = TABLE_HOSTS,
                                                 .tick_period_ms = 10,
                                                 .name = "good",
                                                 .description = "a test",
                                                 .start = start,
                                                 .stop = stop,
                                                 .tick = tick};
#endif
