#include "writers/ledger/death_finding.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <optional>

#include "core/base/signal_text.h"
#include "writers/profile/silent.h"

namespace aon::writers {
namespace {

/// How a rank ended by itself; ranks that others ended have none.
struct Death {
  const Group* group;
  uint64_t time_ns;
  bool is_killed;  ///< by SIGKILL: the kernel (out of memory), or whoever ends the others
};

bool is_fault(int32_t signal) {
  for (const int32_t one : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP}) {
    if (signal == one) return true;
  }
  return false;
}

std::optional<Death> death_of(const Group& group, const clock::ClockMap& clock) {
  const spool::Process& process = *group.process;
  const ProcessExitDefinition& exit = *process.exit;
  const bool is_finished = process.identity && process.identity->complete != 0;
  const bool has_given_up = exit.signal == 0 && exit.exit_code > 0 && !is_finished;
  if (!has_given_up && !is_fault(exit.signal) && exit.signal != SIGKILL) return std::nullopt;
  const uint64_t time_ns = exit.end_ticks == 0 ? UINT64_MAX : clock.to_ns(exit.end_ticks);
  return Death{&group, time_ns, exit.signal == SIGKILL};
}

std::string how(const ProcessExitDefinition& exit, bool has_mpi) {
  if (exit.signal == 0)
    return fmt::format("with exit code {}{}", exit.exit_code,
                       has_mpi ? " and without MPI_Finalize" : "");
  return "by " + signal_text(exit.signal);
}

bool has_mpi(const Model& model) {
  return std::any_of(model.groups.begin(), model.groups.end(), [](const Group& group) {
    return group.rank && group.process != nullptr && group.process->identity;
  });
}

/// True where all ranks ended by themselves with one exit code: what the program has to say.
bool has_one_exit_code(const Model& model) {
  std::optional<int32_t> code;
  for (const Group& group : model.groups) {
    if (!group.rank) continue;
    if (group.process == nullptr || !group.process->exit) return false;
    const ProcessExitDefinition& exit = *group.process->exit;
    if (exit.signal != 0 || exit.exit_code != code.value_or(exit.exit_code)) return false;
    code = exit.exit_code;
  }
  return true;
}

}  // namespace

std::string death_finding(const Model& model, std::span<const clock::ClockMap> clocks) {
  const bool is_mpi = has_mpi(model);
  if (!is_mpi && has_one_exit_code(model)) return "";
  std::optional<Death> first;
  size_t death_count = 0;
  size_t killed_count = 0;
  for (const Group& group : model.groups) {
    if (!group.rank || group.process == nullptr || !group.process->exit) continue;
    const std::optional<Death> death = death_of(group, clocks[group.node]);
    if (!death) continue;
    ++death_count;
    killed_count += death->is_killed ? 1 : 0;
    const bool is_first =
        !first || (death->is_killed == first->is_killed ? death->time_ns < first->time_ns
                                                        : !death->is_killed);
    if (is_first) first = death;
  }
  // Of several that were killed nobody knows whether one of them was the first to go.
  if (!first || (first->is_killed && killed_count > 1)) return "";
  // What MPI calls one made that was only followed, nobody knows.
  const bool is_known = is_mpi && !profile::is_silent(*first->group);
  return fmt::format("rank {} on {} ended {}{}", *first->group->rank,
                     model.job->nodes[first->group->node].host, death_count == 1 ? "" : "first, ",
                     how(*first->group->process->exit, is_known));
}

}  // namespace aon::writers
