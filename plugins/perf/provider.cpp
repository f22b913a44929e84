// The perf provider: counts events of every process of the node, ten times a second. Counting mode
// only; nothing is added to the profiled program but the kernel's own counting.
//
// start() probes each event once, by opening it. What cannot be opened is left out and named, with
// its remedy, in the state of each process; with no event at all the provider is not available.
#include <aon/provider.h>
#include <aon/provider_config.h>

#include <memory>

#include "perf/chosen.h"
#include "perf/cost.h"
#include "perf/events_in_use.h"
#include "perf/session.h"

struct aon_provider {
  std::unique_ptr<const aon::perf::ChosenEvents> events;  ///< whose names the session has
  std::unique_ptr<const aon::perf::EventsInUse> in_use;   ///< until the budget wants less
  aon::perf::Session session;
};

namespace {

aon_status start(aon_core* core, const aon_core_api* api, aon_host, const char* config,
                 aon_provider** self) {
  const aon::perf::Kernel& kernel = aon::perf::real_kernel();
  auto events = std::make_unique<aon::perf::ChosenEvents>(aon::config_value(config, "events"));
  if (aon::config_value(config, "border-events") == "1") events->leave_to_threads(kernel);
  auto in_use = std::make_unique<aon::perf::EventsInUse>(kernel, events->types());
  aon::perf::Availability availability = aon::perf::probe_all(kernel, events->types());
  availability.names_hardware = !events->is_default();
  availability.unknown_names = events->unknown();
  const aon::perf::StateText state = aon::perf::state_of(availability, {});
  api->set_state(core, AON_PROCESS_NODE, state.state, state.reason.c_str(), state.remedy.c_str());
  if (state.state == AON_STATE_OFF) return AON_UNAVAILABLE;
  *self = new aon_provider{
      std::move(events),
      std::move(in_use),
      {core, api, kernel, std::move(availability), aon::perf::switch_cost_ns(kernel)}};
  return AON_OK;
}

void process_started(aon_provider* p, uint32_t process, int32_t pid, int32_t) {
  p->session.process_started(process, pid);
}

void process_ended(aon_provider* p, uint32_t process) { p->session.process_ended(process); }

void tick(aon_provider* p, uint64_t now_ticks) { p->session.tick(now_ticks); }

void stop(aon_provider* p) { delete p; }

}  // namespace

extern "C" const aon_provider_api aon_provider_v1 = {
    .abi = AON_PROVIDER_ABI,
    .size = sizeof(aon_provider_api),
    .hosts = AON_HOST_NODE,
    .tick_period_ms = 100,
    .name = "perf",
    .description = "software and hardware event counts of each process",
    .start = start,
    .flush = nullptr,
    .stop = stop,
    .process_started = process_started,
    .process_ended = process_ended,
    .tick = tick,
    .message = nullptr,
    .throttle =
        [](aon_provider* p, uint32_t divisor) {
          if (divisor != 1) p->in_use.reset();
          p->session.throttle(divisor);
        },
};
