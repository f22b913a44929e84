// The sampling provider: interrupts every thread of every process of the node some 97 times per
// second of its CPU time and notes its call path. The kernel does it; nothing runs in the program.
#include <aon/provider.h>
#include <aon/provider_config.h>

#include <cstdlib>
#include <string>

#include "perf/sampling/sampler.h"

struct aon_provider {
  aon::perf::Sampler sampler;
};

namespace {

aon_status start(aon_core* core, const aon_core_api* api, aon_host, const char* config,
                 aon_provider** self) {
  using namespace aon::perf;
  constexpr uint32_t kNeededBytes = offsetof(aon_core_api, unwind) + sizeof(void*);
  if (api->size < kNeededBytes) {
    api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, "this agent takes no call samples", "");
    return AON_UNAVAILABLE;
  }
  const uint64_t rate_hz = strtoull(aon::config_value(config, "sampling").c_str(), nullptr, 10);
  if (rate_hz == 0) {
    api->set_state(core, AON_PROCESS_NODE, AON_STATE_OFF, "not asked for", "--sampling=97");
    return AON_UNAVAILABLE;
  }
  const bool can_take_stacks = api->size >= offsetof(aon_core_api, set_stack_rate) + sizeof(void*);
  const bool wants_timers = aon::config_value(config, "sampling-fallback") == "timer";
  const Kernel& kernel = real_kernel();
  const SamplingProbe probe = probe_sampling(
      kernel, rate_hz, aon::config_value(config, "call-graph"), can_take_stacks && wants_timers);
  const aon_state state = !probe.event                    ? AON_STATE_OFF
                          : probe.obstacle.reason.empty() ? AON_STATE_ON
                                                          : AON_STATE_DEGRADED;
  api->set_state(core, AON_PROCESS_NODE, state, probe.obstacle.reason.c_str(),
                 probe.obstacle.remedy.c_str());
  if (!probe.event) return AON_UNAVAILABLE;
  const auto worker =
      static_cast<uint32_t>(strtoul(aon::config_value(config, "worker").c_str(), nullptr, 10));
  const uint32_t first_id = worker << (32 - kWorkerIdBits);
  *self = new aon_provider{Sampler({core, api, &kernel, *probe.event, first_id}, probe.obstacle)};
  return AON_OK;
}

}  // namespace

extern "C" const aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 100,
    .name = "sampling",
    .description = "call-path samples of each thread",
    .start = start,
    .flush = nullptr,
    .stop = [](aon_provider* p) { delete p; },
    .process_started = [](aon_provider* p, uint32_t process, int32_t pid,
                          int32_t) { p->sampler.process_started(process, pid); },
    .process_ended = [](aon_provider* p, uint32_t process) { p->sampler.process_ended(process); },
    .tick = [](aon_provider* p, uint64_t now) { p->sampler.tick(now); },
    .message = nullptr,
    .throttle = [](aon_provider* p, uint32_t divisor) { p->sampler.throttle(divisor); },
};
