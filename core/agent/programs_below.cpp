#include "core/agent/programs_below.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/agent/busy_programs.h"
#include "core/agent/proc.h"
#include "core/base/time.h"

namespace aon::agent {
namespace {

/// Pids come again: the start time tells whose it is.
bool is_refused(const std::map<pid_t, uint64_t>& refused, pid_t pid) {
  const auto found = refused.find(pid);
  return found != refused.end() && found->second == proc::start_time_ticks(pid);
}

}  // namespace

std::vector<BusyBelow> find_busy_below(const BelowQuestion& question) {
  std::vector<BusyBelow> found;
  std::vector<BelowQuestion::Root> way = question.roots;
  std::set<pid_t> seen;
  for (const BelowQuestion::Root& root : question.roots) seen.insert(root.pid);
  for (size_t i = 0; i < way.size() && i < kMostLookedThrough; ++i) {
    const BelowQuestion::Root at = way[i];
    for (const pid_t child : proc::children_of(at.pid)) {
      if (question.recorded.count(child) != 0 || is_refused(question.refused, child) ||
          !seen.insert(child).second)
        continue;
      way.push_back({child, at.number});
      const bool is_busy =
          question.known.count(child) == 0 && proc::cpu_time_ns(child) >= kBusyCpuNs;
      if (is_busy) found.push_back({child, proc::start_time_ticks(child), at.number});
    }
  }
  return found;
}

bool ProgramsBelow::is_due(uint64_t now_ns) {
  if (now_ns - last_look_ns_ < rest_ns_) return false;
  last_look_ns_ = now_ns;
  return !look_.is_asked();
}

void ProgramsBelow::refused(pid_t pid) {
  if (refused_.size() >= kMostRefused)
    std::erase_if(refused_, [](const auto& one) {
      return one.second == 0 || proc::start_time_ticks(one.first) != one.second;
    });
  if (refused_.size() < kMostRefused) refused_[pid] = proc::start_time_ticks(pid);
}

void ProgramsBelow::ask(BelowQuestion question) {
  question.refused = refused_;
  look_.ask([question = std::move(question)] {
    const uint64_t begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    std::vector<BusyBelow> programs = find_busy_below(question);
    return Found{std::move(programs), now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns};
  });
}

std::vector<BusyBelow> ProgramsBelow::take() {
  std::optional<Found> found = look_.take();
  if (!found) return {};
  rest_ns_ = std::max(kBelowLookNs, kBelowRest * found->cpu_ns);
  // It may have been refused since it was asked.
  std::erase_if(found->programs,
                [&](const BusyBelow& one) { return is_refused(refused_, one.pid); });
  return std::move(found->programs);
}

}  // namespace aon::agent
