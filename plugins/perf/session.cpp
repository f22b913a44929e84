#include "perf/session.h"

#include <utility>

namespace aon::perf {

void Session::process_started(uint32_t process, pid_t pid) {
  std::vector<pid_t> tasks = kernel_.list_tasks(pid);
  OpenProblems problems;
  problems.tasks_left_out = tasks.size() > kMaxTasks;
  if (problems.tasks_left_out) tasks.resize(kMaxTasks);
  std::vector<Metric> metrics;
  for (const ProbedEvent& event : availability_.events) {
    if (!event.how.available) continue;
    Counter counter(kernel_, *event.type, event.how);
    const int error_number = counter.open(tasks);
    if (error_number != 0) problems.errors.push_back({event.type, error_number});
    if (!counter.is_open()) continue;
    const uint32_t id = api_->define_metric(core_, process, event.type->name, event.type->unit,
                                            event.type->description, AON_METRIC_ACCUMULATED);
    if (id != AON_NO_ID) metrics.push_back({std::move(counter), id});
  }
  problems.nothing_opened = metrics.empty();
  const StateText state = state_of(availability_, problems);
  api_->set_state(core_, process, state.state, state.reason.c_str(), state.remedy.c_str());
  if (!metrics.empty()) processes_.insert_or_assign(process, std::move(metrics));
}

void Session::sample(uint32_t process, std::vector<Metric>& metrics, uint64_t now_ticks) {
  for (Metric& metric : metrics) {
    const std::optional<Reading> reading = metric.counter.read();
    if (!reading) continue;
    api_->sample(core_, process, metric.id, now_ticks, reading->value, reading->enabled_ns,
                 reading->running_ns);
  }
}

void Session::process_ended(uint32_t process) {
  const auto found = processes_.find(process);
  if (found == processes_.end()) return;
  sample(process, found->second, api_->now_ticks(core_));
  processes_.erase(found);
}

void Session::tick(uint64_t now_ticks) {
  for (auto& [process, metrics] : processes_) sample(process, metrics, now_ticks);
}

}  // namespace aon::perf
