#include "writers/ledger/death_finding.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <algorithm>

namespace aon::writers {
namespace {

/// What launchers, batch systems and people send; SIGKILL is the kernel's, too (out of memory).
bool is_from_outside(int32_t signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

const char* signal_name(int32_t signal) {
  const char* name = signal > 0 && signal < NSIG ? sigdescr_np(signal) : nullptr;
  return name != nullptr ? name : "unknown";
}

}  // namespace

std::string death_finding(const Model& model, std::span<const clock::ClockMap> clocks) {
  const Group* first = nullptr;
  uint64_t first_ns = 0;
  size_t ended_count = 0;   // by a signal
  size_t killed_count = 0;  // by SIGKILL
  for (const Group& group : model.groups) {
    if (!group.rank || group.process == nullptr || !group.process->exit) continue;
    const ProcessExitDefinition& exit = *group.process->exit;
    if (exit.signal == 0) continue;
    ++ended_count;
    killed_count += exit.signal == SIGKILL ? 1 : 0;
    if (is_from_outside(exit.signal)) continue;
    const uint64_t end_ns = exit.end_ticks == 0 ? 0 : clocks[group.node].to_ns(exit.end_ticks);
    const bool is_fault = exit.signal != SIGKILL;
    const bool first_is_fault = first != nullptr && first->process->exit->signal != SIGKILL;
    if (first != nullptr && (is_fault != first_is_fault ? first_is_fault : end_ns >= first_ns))
      continue;
    first = &group;
    first_ns = end_ns;
  }
  // A launcher that kills all ranks kills them so.
  const auto rank_count =
      static_cast<size_t>(std::count_if(model.groups.begin(), model.groups.end(),
                                        [](const Group& group) { return group.rank.has_value(); }));
  if (first == nullptr ||
      (killed_count == ended_count && ended_count == rank_count && rank_count > 1))
    return "";
  const int32_t signal = first->process->exit->signal;
  return fmt::format(
      "rank {} on {} {}, of signal {} ({}); see job.reason of aon.json for the others",
      *first->rank, model.job->nodes[first->node].host, ended_count == 1 ? "died" : "died first",
      signal, signal_name(signal));
}

}  // namespace aon::writers
