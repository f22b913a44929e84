// The perf provider: counts events of every process of the node, ten times a second. Counting mode
// only; nothing is added to the profiled program but the kernel's own counting.
//
// start() probes each event once, by opening it. What cannot be opened is left out and named, with
// its remedy, in the state of each process; with no event at all the provider is not available.
#include <aon/provider.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perf/counters.h"
#include "perf/state.h"

namespace {

using aon::perf::Counter;
using aon::perf::EventType;
using aon::perf::Reading;

struct Metric {
  Counter counter;
  uint32_t id;
};

}  // namespace

// (the ABI's name of our own type)
struct aon_provider {
  aon_core* core;
  const aon_core_api* api;
  aon::perf::Availability availability;
  std::map<uint32_t, std::vector<Metric>> processes;  ///< by process number
};

namespace {

aon_status start(aon_core* core, const aon_core_api* api, aon_host, const char*,
                 aon_provider** self) {
  aon::perf::Availability availability = aon::perf::probe_all(aon::perf::real_kernel());
  const aon::perf::StateText state = aon::perf::state_of(availability, {});
  api->set_state(core, AON_PROCESS_NODE, state.state, state.reason.c_str(), state.remedy.c_str());
  if (state.state == AON_STATE_OFF) return AON_UNAVAILABLE;
  *self = new aon_provider{core, api, std::move(availability), {}};
  return AON_OK;
}

void process_started(aon_provider* p, uint32_t process, int32_t pid, int32_t) {
  const aon::perf::Kernel& kernel = aon::perf::real_kernel();
  std::vector<pid_t> tasks = kernel.list_tasks(pid);
  aon::perf::OpenProblems problems;
  problems.tasks_left_out = tasks.size() > aon::perf::kMaxTasks;
  if (problems.tasks_left_out) tasks.resize(aon::perf::kMaxTasks);
  std::vector<Metric>& metrics = p->processes[process];
  for (const aon::perf::ProbedEvent& event : p->availability.events) {
    if (!event.how.available) continue;
    Counter counter(kernel, *event.type, event.how);
    const int error_number = counter.open(tasks);
    if (error_number != 0) problems.errors.push_back({event.type, error_number});
    if (!counter.is_open()) continue;
    const uint32_t id = p->api->define_metric(p->core, process, event.type->name, event.type->unit,
                                              event.type->description, AON_METRIC_ACCUMULATED);
    if (id != AON_NO_ID) metrics.push_back({std::move(counter), id});
  }
  problems.nothing_opened = metrics.empty();
  const aon::perf::StateText state = aon::perf::state_of(p->availability, problems);
  p->api->set_state(p->core, process, state.state, state.reason.c_str(), state.remedy.c_str());
}

void read_process(aon_provider* p, uint32_t process, std::vector<Metric>& metrics,
                  uint64_t now_ticks) {
  for (Metric& metric : metrics) {
    const std::optional<Reading> reading = metric.counter.read();
    if (!reading) continue;
    p->api->sample(p->core, process, metric.id, now_ticks, reading->value, reading->enabled_ns,
                   reading->running_ns);
  }
}

// A descriptor outlives its process: the last read holds the exact end of the count.
void process_ended(aon_provider* p, uint32_t process) {
  const auto found = p->processes.find(process);
  if (found == p->processes.end()) return;
  read_process(p, process, found->second, p->api->now_ticks(p->core));
  p->processes.erase(found);
}

void tick(aon_provider* p, uint64_t now_ticks) {
  for (auto& [process, metrics] : p->processes) read_process(p, process, metrics, now_ticks);
}

void flush(aon_provider* p) { tick(p, p->api->now_ticks(p->core)); }

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
    .flush = flush,
    .stop = stop,
    .process_started = process_started,
    .process_ended = process_ended,
    .tick = tick,
    .message = nullptr,
};
