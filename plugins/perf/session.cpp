#include "perf/session.h"

#include <utility>

namespace aon::perf {

void Session::process_started(uint32_t process_number, pid_t pid) {
  Process process;
  OpenProblems problems = open_counters(process_number, pid, process);
  open_proc(process_number, pid, process);
  problems.nothing_opened = process.metrics.empty() && process.proc_metrics.empty();
  const StateText state = state_of(availability_, problems);
  api_->set_state(core_, process_number, state.state, state.reason.c_str(), state.remedy.c_str());
  if (!problems.nothing_opened) processes_.insert_or_assign(process_number, std::move(process));
}

OpenProblems Session::open_counters(uint32_t process_number, pid_t pid, Process& process) {
  OpenProblems problems;
  std::vector<pid_t> tasks = kernel_.list_tasks(pid);
  problems.tasks_left_out = tasks.size() > kMaxTasks;
  if (problems.tasks_left_out) tasks.resize(kMaxTasks);
  for (CounterGroup& group : make_groups()) {
    group.open(tasks);
    Metrics metrics{std::move(group), {}};
    for (const CounterGroup::Event& event : metrics.counters.events()) {
      if (event.error_number != 0) problems.errors.push_back({event.type, event.error_number});
      metrics.ids.push_back(event.is_open ? define(process_number, *event.type) : AON_NO_ID);
    }
    if (metrics.counters.is_open()) process.metrics.push_back(std::move(metrics));
  }
  return problems;
}

/// Those of software together, where the kernel can.
std::vector<CounterGroup> Session::make_groups() const {
  std::vector<CounterGroup::Event> together;
  std::vector<CounterGroup> groups;
  for (const ProbedEvent& event : availability_.events) {
    if (!event.how.available) continue;
    if (availability_.has_groups && !is_hardware(*event.type)) {
      together.push_back({event.type, event.how});
    } else {
      groups.emplace_back(kernel_, std::vector<CounterGroup::Event>{{event.type, event.how}});
    }
  }
  if (!together.empty()) groups.insert(groups.begin(), CounterGroup(kernel_, std::move(together)));
  return groups;
}

void Session::open_proc(uint32_t process_number, pid_t pid, Process& process) {
  for (const ProbedEvent& event : availability_.events) {
    if (!event.from_proc) continue;
    if (!process.proc) {
      if (kernel_.list_tasks(pid).empty()) return;  // it has ended
      process.proc.emplace(kernel_, pid);
    }
    const uint32_t id = define(process_number, *event.type);
    if (id == AON_NO_ID) continue;
    const bool is_switches = event.type->config == PERF_COUNT_SW_CONTEXT_SWITCHES;
    process.proc_metrics.push_back(
        {is_switches ? &TaskCounts::context_switches : &TaskCounts::migrations, id});
  }
}

uint32_t Session::define(uint32_t process_number, const EventType& type) {
  return api_->define_metric(core_, process_number, type.name, type.unit, type.description,
                             AON_METRIC_ACCUMULATED);
}

void Session::sample(uint32_t process_number, Process& process, uint64_t now_ticks) {
  for (Metrics& metrics : process.metrics) {
    const std::span<const std::optional<Reading>> readings = metrics.counters.read();
    for (size_t i = 0; i < readings.size(); ++i) {
      if (!readings[i] || metrics.ids[i] == AON_NO_ID) continue;
      api_->sample(core_, process_number, metrics.ids[i], now_ticks, readings[i]->value,
                   readings[i]->enabled_ns, readings[i]->running_ns);
    }
  }
  if (!process.proc || --process.ticks_to_proc > 0) return;
  process.ticks_to_proc = kProcPeriodTicks;
  const TaskCounts counts = process.proc->read();
  for (const ProcMetric& metric : process.proc_metrics) {
    api_->sample(core_, process_number, metric.id, now_ticks,
                 static_cast<double>(counts.*metric.count), 0, 0);
  }
}

void Session::process_ended(uint32_t process_number) {
  const auto found = processes_.find(process_number);
  if (found == processes_.end()) return;
  sample(process_number, found->second, api_->now_ticks(core_));
  processes_.erase(found);
}

void Session::tick(uint64_t now_ticks) {
  for (auto& [number, process] : processes_) sample(number, process, now_ticks);
}

}  // namespace aon::perf
