// Programs that silent ones of the launch have started (programs_below.h).
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/agent/server.h"
#include "core/agent/timing.h"

namespace aon::agent {
namespace {

std::string name_of(const RegisteredPid& registered) {
  const std::string number = std::to_string(registered.pid);
  return registered.program[0] != '\0' ? registered.program + (" (" + number + ")")
                                       : "process " + number;
}

}  // namespace

/// Once a second: who has started something that computes, and whose look does not return.
void Server::look_below(uint64_t now_ns) {
  if (following_ == Following::kNobody || !below_.is_due(now_ns)) return;
  for (const uint32_t number : looks_.late(now_ns)) {
    const RegisteredPid& registered = state_->header().registered[number];
    if (busy_.has(number)) listener_->note(RecordingNote::kNotLookedAt, name_of(registered));
  }
  BelowQuestion question;
  question.recorded = {::getpid(), ::getppid()};  // worker and keeper
  std::set<pid_t> followed;
  for (const auto& [index, process] : processes_) {
    const ProcessCell& cell = state_->process(index);
    const bool is_followed = cell.is_followed.load(std::memory_order_relaxed) != 0;
    if (process.ended_ns == 0) (is_followed ? followed : question.recorded).insert(cell.pid_here());
  }
  for (const auto& [number, pidfd] : registered_) {
    const pid_t pid = state_->header().registered[number].pid;
    question.known.insert(pid);
    if (busy_.has(number) || followed.count(pid) != 0) question.roots.push_back({pid, number});
  }
  if (!question.roots.empty()) below_.ask(std::move(question));
}

/// From here on it is as a program that aon-run has registered with the rank of the one above.
void Server::register_below() {
  StateHeader& header = state_->header();
  for (const BusyBelow& found : below_.take()) {
    const uint32_t index = header.registered_count.load(std::memory_order_relaxed);
    if (index >= kMaxRegistered || below_count() >= kMostBelow)
      return listener_->note(RecordingNote::kTooManyBelow, "");
    UniqueFd pidfd(proc::open_pidfd(found.pid));
    // One that waits for its parent to reap it has used its CPU time, too.
    const bool is_the_same = pidfd && !is_among_the_last(pidfd.get()) &&
                             !proc::has_ended(pidfd.get()) &&
                             proc::start_time_ticks(found.pid) == found.start_time_ticks;
    if (!is_the_same || is_known(found.pid, found.start_time_ticks)) continue;
    const RegisteredPid& above = header.registered[found.number];
    RegisteredPid& registered = header.registered[index];
    registered.pid = found.pid;
    registered.rank = above.rank;
    registered.world_size = above.world_size;
    registered.start_time_ticks = found.start_time_ticks;
    registered.may_be_followed = 1;
    registered.is_below = 1;
    watch_registered(index, std::move(pidfd));
    busy_.add(index, found.pid);
    last_event_ns_ = monotonic_ns();  // what has started it may have ended meanwhile
  }
}

uint32_t Server::below_count() const {
  const StateHeader& header = state_->header();
  const uint32_t count = header.registered_count.load(std::memory_order_relaxed);
  uint32_t below = 0;
  for (uint32_t i = 0; i < count; ++i) below += header.registered[i].is_below;
  return below;
}

/// What the programs of the launch have left running holds nothing up: it is followed no further,
/// and nobody knows how it will end.
void Server::leave_what_is_below() {
  if (!polled_.empty()) return;
  const StateHeader& header = state_->header();
  const auto is_below = [&](const auto& one) { return header.registered[one.first].is_below != 0; };
  if (!std::all_of(registered_.begin(), registered_.end(), is_below)) return;
  const auto holds_nothing_up = [&](const auto& one) {
    const uint32_t followed =
        state_->process(one.first).is_followed.load(std::memory_order_relaxed);
    return one.second.ended_ns != 0 || followed == static_cast<uint32_t>(Followed::kBelow);
  };
  if (!std::all_of(processes_.begin(), processes_.end(), holds_nothing_up)) return;
  for (auto& [cell, process] : processes_) {
    if (process.ended_ns != 0) continue;
    process.has_status = !process.pidfd || !proc::has_ended(process.pidfd.get());
    end_process(cell);
  }
  while (!registered_.empty()) registered_gone(registered_.begin()->first);
}

}  // namespace aon::agent
