#include "perf/session.h"

#include <algorithm>
#include <utility>

#include "perf/cost.h"

namespace aon::perf {
namespace {

/// What need not be counted: a page fault is a minor or a major one, and software events of a
/// thread run while it does.
std::optional<Reading> derive(const EventType& type, const CounterGroup& counters,
                              std::span<const std::optional<Reading>> readings) {
  std::optional<Reading> sum;
  for (size_t i = 0; i < readings.size(); ++i) {
    if (!readings[i]) continue;
    const EventType& other = *counters.events()[i].type;
    if (type.config == PERF_COUNT_SW_TASK_CLOCK) {
      return Reading{static_cast<double>(readings[i]->running_ns), readings[i]->enabled_ns,
                     readings[i]->running_ns};
    }
    if (!is_software(other, PERF_COUNT_SW_PAGE_FAULTS_MIN) &&
        !is_software(other, PERF_COUNT_SW_PAGE_FAULTS_MAJ))
      continue;
    if (!sum) sum = Reading{0, readings[i]->enabled_ns, readings[i]->running_ns};
    sum->value += readings[i]->value;
  }
  return sum;
}

}  // namespace

void Session::process_started(uint32_t process_number, pid_t pid) {
  Process process;
  process.pid = pid;
  OpenProblems problems = open_counters(process_number, pid, process);
  open_proc(process_number, pid, process);
  problems.nothing_opened = process.groups.empty() && process.proc_metrics.empty();
  process.state = state_of(availability_, problems);
  report(process_number, process);
  if (!problems.nothing_opened) processes_.insert_or_assign(process_number, std::move(process));
}

/// What the kernel's counting would cost it is told with it.
void Session::report(uint32_t process_number, const Process& process) {
  StateText state = process.state;
  const auto add = [](std::string* text, const std::string& more) {
    *text += (text->empty() ? "" : "; ") + more;
  };
  if (process.was_left) {
    const char* how =
        process.stand_in ? "counted from /proc once a second: " : "counted from /proc for a time: ";
    const char* why = process.is_refused
                          ? "it could not be counted by the kernel again"
                          : "the kernel's counting cost more than the budget at its context "
                            "switches and faults";
    add(&state.reason, std::string(how) + why);
    if (!process.missed.empty()) state.reason += " (not counted then: " + process.missed + ")";
    add(&state.remedy, "a larger --budget");
    if (state.state == AON_STATE_ON) state.state = AON_STATE_DEGRADED;
  }
  api_->set_state(core_, process_number, state.state, state.reason.c_str(), state.remedy.c_str());
}

OpenProblems Session::open_counters(uint32_t process_number, pid_t pid, Process& process) {
  OpenProblems problems;
  std::vector<pid_t> tasks = kernel_.list_tasks(pid);
  problems.tasks_left_out = tasks.size() > kMaxTasks;
  if (problems.tasks_left_out) tasks.resize(kMaxTasks);
  for (CounterGroup& counters : make_groups()) {
    counters.open(tasks);
    Group group{std::move(counters)};
    for (const CounterGroup::Event& event : group.counters.events()) {
      if (event.error_number != 0) problems.errors.push_back({event.type, event.error_number});
      group.metrics.push_back(
          {event.type, event.is_open ? define(process_number, *event.type) : AON_NO_ID});
    }
    if (group.metrics.size() > 1) add_derived(process_number, group, problems);
    if (group.counters.is_open()) process.groups.push_back(std::move(group));
  }
  return problems;
}

/// Each event that is counted costs the process something at its context switches and faults.
bool Session::follows_from_others(const ProbedEvent& event) const {
  const auto is_counted = [&](uint64_t config) {
    return std::any_of(availability_.events.begin(), availability_.events.end(),
                       [&](const ProbedEvent& other) {
                         return other.how.available && is_software(*other.type, config);
                       });
  };
  if (!availability_.has_groups) return false;
  if (!is_counted(PERF_COUNT_SW_PAGE_FAULTS_MIN) || !is_counted(PERF_COUNT_SW_PAGE_FAULTS_MAJ))
    return false;
  return is_software(*event.type, PERF_COUNT_SW_TASK_CLOCK) ||
         is_software(*event.type, PERF_COUNT_SW_PAGE_FAULTS);
}

void Session::add_derived(uint32_t process_number, Group& group, OpenProblems& problems) {
  const CounterGroup::Event& first = group.counters.events().front();
  for (const ProbedEvent& event : availability_.events) {
    if (!event.how.available || !follows_from_others(event)) continue;
    if (first.error_number != 0) problems.errors.push_back({event.type, first.error_number});
    group.metrics.push_back(
        {event.type, first.is_open ? define(process_number, *event.type) : AON_NO_ID});
  }
}

/// Those of software together, where the kernel can.
std::vector<CounterGroup> Session::make_groups() const {
  std::vector<CounterGroup::Event> together;
  std::vector<CounterGroup> groups;
  for (const ProbedEvent& event : availability_.events) {
    if (!event.how.available || follows_from_others(event)) continue;
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
        {is_switches ? &TaskCounts::context_switches : &TaskCounts::migrations, id,
         price_ns(*event.type)});
  }
}

uint32_t Session::define(uint32_t process_number, const EventType& type) {
  return api_->define_metric(core_, process_number, type.name, type.unit, type.description,
                             AON_METRIC_ACCUMULATED);
}

void Session::sample(uint32_t process_number, Process& process, uint64_t now_ticks) {
  if (!process.stand_in) sample_counters(process_number, process, now_ticks);
  if ((process.proc || process.stand_in) && --process.ticks_to_proc <= 0) {
    process.ticks_to_proc = kProcPeriodTicks;
    if (process.stand_in) sample_stand_in(process_number, process, now_ticks);
    if (process.proc) sample_proc(process_number, process, now_ticks);
  }
  if (--process.ticks_to_rate > 0) return;
  process.ticks_to_rate = kProcPeriodTicks;
  process.cost_rate = process.cost_ns - std::exchange(process.period_cost_ns, process.cost_ns);
}

void Session::sample_counters(uint32_t process_number, Process& process, uint64_t now_ticks) {
  for (Group& group : process.groups) {
    const std::span<const std::optional<Reading>> readings = group.counters.read();
    for (size_t i = 0; i < group.metrics.size(); ++i) {
      const std::optional<Reading> reading =
          i < readings.size() ? readings[i]
                              : derive(*group.metrics[i].type, group.counters, readings);
      if (reading) give(process_number, process, group.metrics[i], *reading, now_ticks);
    }
  }
}

void Session::give(uint32_t process_number, Process& process, Metric& metric,
                   const Reading& since_base, uint64_t now_ticks) {
  if (metric.id == AON_NO_ID) return;
  const double before = metric.total.value;
  metric.total = {metric.base.value + since_base.value,
                  metric.base.enabled_ns + since_base.enabled_ns,
                  metric.base.running_ns + since_base.running_ns};
  api_->sample(core_, process_number, metric.id, now_ticks, metric.total.value,
               metric.total.enabled_ns, metric.total.running_ns);
  const uint64_t price = price_ns(*metric.type);
  if (price != 0 && metric.total.value > before)
    charge(process, static_cast<uint64_t>(metric.total.value - before) * price);
}

/// What one more of an event cost the process.
uint64_t Session::price_ns(const EventType& type) const {
  if (is_software(type, PERF_COUNT_SW_CONTEXT_SWITCHES)) return switch_ns_;
  return is_software(type, PERF_COUNT_SW_PAGE_FAULTS) ? kFaultNs : 0;
}

void Session::charge(Process& process, uint64_t cost_ns) {
  process.cost_ns += cost_ns;
  if (!process.stand_in && !process.groups.empty()) api_->add_cost(core_, cost_ns);
}

void Session::sample_proc(uint32_t process_number, Process& process, uint64_t now_ticks) {
  const TaskCounts counts = process.proc->read();
  for (ProcMetric& metric : process.proc_metrics) {
    const uint64_t count = counts.*metric.count;
    api_->sample(core_, process_number, metric.id, now_ticks, static_cast<double>(count), 0, 0);
    charge(process, (count - std::exchange(metric.given, count)) * metric.price_ns);
  }
}

void Session::sample_stand_in(uint32_t process_number, Process& process, uint64_t now_ticks) {
  if (!process.stand_in->read()) return;
  for (Group& group : process.groups) {
    for (Metric& metric : group.metrics) {
      const std::optional<double> count = process.stand_in->count_of(*metric.type);
      if (count) give(process_number, process, metric, {*count, 0, 0}, now_ticks);
    }
  }
}

void Session::leave(uint32_t process_number, Process& process) {
  sample_counters(process_number, process, api_->now_ticks(core_));
  process.stand_in.emplace(kernel_, process.pid);
  process.was_left = true;
  process.missed = missed_events(process);
  close_groups(process);
  report(process_number, process);
}

/// What the kernel counts of it and /proc does not.
std::string Session::missed_events(const Process& process) const {
  bool has_hardware = false;
  std::string missed;
  for (const Group& group : process.groups) {
    for (const CounterGroup::Event& event : group.counters.events()) {
      const bool is_missed = event.is_open && !process.stand_in->count_of(*event.type);
      has_hardware |= is_missed && is_hardware(*event.type);
      if (is_missed && !is_hardware(*event.type))
        missed += (missed.empty() ? "" : ", ") + std::string(event.type->name);
    }
  }
  if (has_hardware) missed += missed.empty() ? "hardware events" : ", hardware events";
  return missed;
}

void Session::close_groups(Process& process) {
  for (Group& group : process.groups) {
    for (Metric& metric : group.metrics) metric.base = metric.total;
    group.counters.close();
  }
}

/// All that was counted, of all threads; or it stays as it is.
void Session::take_back(uint32_t process_number, Process& process) {
  sample_stand_in(process_number, process, api_->now_ticks(core_));
  const std::vector<pid_t> tasks = kernel_.list_tasks(process.pid);
  if (tasks.empty()) return;  // it has ended
  bool is_whole = tasks.size() <= kMaxTasks;
  for (Group& group : process.groups) {
    if (is_whole) group.counters.open(tasks);
    const std::span<const CounterGroup::Event> events = group.counters.events();
    for (size_t i = 0; i < events.size(); ++i) {
      const bool is_open = events[i].is_open && events[i].error_number == 0;
      is_whole = is_whole && (is_open || group.metrics[i].id == AON_NO_ID);
    }
  }
  if (!is_whole) {
    for (Group& group : process.groups) group.counters.close();
    if (std::exchange(process.is_refused, true)) return;  // and that was told
  } else {
    process.is_refused = false;
    process.stand_in.reset();
    for (Group& group : process.groups) {
      for (Metric& metric : group.metrics) metric.base = metric.total;
    }
  }
  report(process_number, process);
}

void Session::throttle(uint32_t divisor) {
  divisor_ = divisor;
  const std::vector<Priced> processes = by_price();
  uint64_t remaining = 0;
  for (const Priced& one : processes) remaining += one.cost_rate;
  const uint64_t allowed = divisor == 0 ? 0 : remaining / divisor;
  for (const Priced& one : processes) {
    Process& process = processes_.at(one.number);
    const bool is_too_much = remaining > allowed && one.cost_rate > 0;
    if (is_too_much) remaining -= one.cost_rate;
    if (is_too_much && !process.stand_in) leave(one.number, process);
    if (!is_too_much && process.stand_in) take_back(one.number, process);
  }
}

/// Between two words of the budget, for processes that have come and others that have changed.
void Session::leave_more() {
  if (divisor_ == 1) return;
  const std::vector<Priced> processes = by_price();
  uint64_t all = 0;
  uint64_t watched = 0;
  for (const Priced& one : processes) {
    all += one.cost_rate;
    if (!processes_.at(one.number).stand_in) watched += one.cost_rate;
  }
  const uint64_t allowed = divisor_ == 0 ? 0 : all / divisor_ * 5 / 4;  // a second is not another
  for (const Priced& one : processes) {
    Process& process = processes_.at(one.number);
    if (watched <= allowed || one.cost_rate == 0) return;
    if (process.stand_in) continue;
    watched -= one.cost_rate;
    leave(one.number, process);
  }
}

/// Those that the kernel counts, or did, the dearest first.
std::vector<Session::Priced> Session::by_price() const {
  std::vector<Priced> processes;
  for (const auto& [number, process] : processes_) {
    if (!process.groups.empty()) processes.push_back({process.cost_rate, number});
  }
  std::sort(processes.begin(), processes.end(),
            [](const Priced& a, const Priced& b) { return a.cost_rate > b.cost_rate; });
  return processes;
}

void Session::process_ended(uint32_t process_number) {
  const auto found = processes_.find(process_number);
  if (found == processes_.end()) return;
  Process& process = found->second;
  if (process.stand_in) process.ticks_to_proc = 0;
  sample(process_number, process, api_->now_ticks(core_));
  processes_.erase(found);
}

void Session::tick(uint64_t now_ticks) {
  for (auto& [number, process] : processes_) sample(number, process, now_ticks);
  if (--ticks_to_look_ > 0) return;
  ticks_to_look_ = kProcPeriodTicks;
  leave_more();
  if (divisor_ != 1 || --looks_to_retry_ > 0) return;
  looks_to_retry_ = kLooksPerRetry;
  for (auto& [number, process] : processes_) {
    if (process.stand_in) take_back(number, process);
  }
}

}  // namespace aon::perf
