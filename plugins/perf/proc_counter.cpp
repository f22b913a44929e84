#include "perf/proc_counter.h"

#include <algorithm>

namespace aon::perf {

ProcCounter::ProcCounter(const Kernel& kernel, pid_t pid) : kernel_(&kernel), pid_(pid) {
  update(true);
}

TaskCounts ProcCounter::read() {
  update(false);
  return total_;
}

void ProcCounter::update(bool is_baseline) {
  std::vector<pid_t> tasks = kernel_->list_tasks(pid_);
  if (tasks.size() > kMaxProcTasks) tasks.resize(kMaxProcTasks);
  std::unordered_map<pid_t, TaskCounts> seen;
  for (const pid_t tid : tasks) {
    TaskCounts now{};
    if (!kernel_->read_task(pid_, tid, &now)) continue;
    seen[tid] = now;
    if (is_baseline) continue;
    const auto before = last_.find(tid);
    const TaskCounts base = before == last_.end() ? TaskCounts{} : before->second;
    // A thread id that was given to a new thread starts from 0 again.
    total_.context_switches +=
        now.context_switches - std::min(now.context_switches, base.context_switches);
    total_.migrations += now.migrations - std::min(now.migrations, base.migrations);
    total_.has_migrations |= now.has_migrations;
  }
  last_ = std::move(seen);
}

}  // namespace aon::perf
