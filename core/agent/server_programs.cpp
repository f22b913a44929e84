// The programs that aon-run registers, whether or not anything is recorded of them.

#include <cstring>

#include "core/agent/server.h"
#include "core/agent/span.h"

namespace aon::agent {

void Server::register_pid(const Register& message) {
  StateHeader& header = state_->header();
  if (message.expected_local_ranks != 0)
    header.expected_ranks.store(message.expected_local_ranks, std::memory_order_relaxed);
  const uint32_t index = header.registered_count.load(std::memory_order_relaxed);
  UniqueFd pidfd(proc::open_pidfd(message.pid));
  if (index >= kMaxRegistered) return note_world(message.world_size);
  RegisteredPid& registered = header.registered[index];
  registered.pid = message.pid;
  registered.is_gone = pidfd ? 0 : 1;
  std::memcpy(registered.program, message.program, sizeof(registered.program));
  registered.program[sizeof(registered.program) - 1] = '\0';
  const int fd = pidfd.get();
  if (pidfd) keeper_->keep(KeepKind::kRegistered, index, message.pid, {&fd, 1});
  header.registered_count.store(index + 1, std::memory_order_release);  // pairs with agent:cells
  note_world(message.world_size);
  if (pidfd) add_registered(index, std::move(pidfd));
  if (follows_registered_) follow(message);
}

void Server::note_world(uint32_t world_size) {
  const uint64_t now_ns = monotonic_ns();
  agent::note_world(state_, world_size, now_ns);
  decide_span(state_, now_ns);
}

void Server::registered_gone(uint32_t index) {
  const auto it = registered_.find(index);
  if (it == registered_.end()) return;
  RegisteredPid& registered = state_->header().registered[index];
  early_waiters_.program_ended(it->second.get(), registered.pid, keeper_);
  registered_.erase(it);
  registered.is_gone = 1;
  keeper_->drop(KeepKind::kRegistered, index);
  last_event_ns_ = monotonic_ns();
}

}  // namespace aon::agent
