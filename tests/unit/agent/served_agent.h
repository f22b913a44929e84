// An agent's server in a process of its own, and who connects to it, for tests of what it makes of
// them.
#pragma once

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/server.h"
#include "core/agent/staging.h"
#include "core/agent/timing.h"
#include "core/base/packet.h"
#include "tests/old_kernel.h"
#include "tests/unit/agent/staged_count.h"

namespace aon::agent {

constexpr uint64_t kStagingBytes = 32 * 4096;
constexpr uint64_t kPassNs = 10'000'000;
constexpr int kPasses = 500;
constexpr int kUnknown = 99;

class Nobody : public ProcessListener {
 public:
  void process_started(uint32_t /*process*/, int32_t /*pid*/, int32_t /*rank*/) override {}
  void process_ended(uint32_t /*process*/, std::vector<int32_t> /*tids*/) override {}
  void process_refused(const Error& reason) override { refusal = reason.message; }
  void note(RecordingNote what, const std::string& program) override {
    notes.emplace_back(what, program);
  }

  std::string refusal;
  std::vector<std::pair<RecordingNote, std::string>> notes;
};

template <class T>
T message_of(MessageType type) {
  T message{};
  message.header = {kProtocolMagic, kProtocolVersion, type, sizeof(T)};
  return message;
}

/// An agent that takes registered programs as processes, in a process of its own.
class Agent {
 public:
  explicit Agent(Following following = Following::kAll) : following_(following) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) ::_exit(90);
    ::close(pair[0]);  // the keeper is gone
    keeper_.emplace(UniqueFd(pair[1]));
    address_.sun_family = AF_UNIX;  // of no file
    std::snprintf(address_.sun_path + 1, sizeof(address_.sun_path) - 1, "aon-%d", ::getpid());
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::bind(listener_.get(), address(), sizeof(address_)) != 0) ::_exit(91);
    if (::listen(listener_.get(), 8) != 0) ::_exit(92);
    const DrainSettings settings{8u << 20, 16u << 20, false, 0};
    drainer_.emplace(settings, &state_, &staging_, &tail_, &inbox_, &modes_);
    server_.emplace(listener_.get(), &state_, &*drainer_, &*keeper_, &nobody_, following);
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), address(), sizeof(address_)) != 0) ::_exit(93);
    return fd;
  }
  void poll() { server_->poll(0); }
  /// How long it waits for nothing.
  uint64_t idle_ns(uint64_t timeout_ns) {
    const uint64_t begin_ns = monotonic_ns();
    server_->poll(timeout_ns);
    return monotonic_ns() - begin_ns;
  }
  /// As behind a worker that was killed, where the keeper held nothing; processes are none of this.
  void replace_worker() {
    server_.emplace(listener_.get(), &state_, &*drainer_, &*keeper_, &nobody_, following_);
    server_->adopt({});
  }
  /// As with SIGTERM.
  void end_soon() {
    signal_.reset(::eventfd(1, EFD_CLOEXEC));
    server_->watch_signals(signal_.get());
  }
  bool end_all() { return server_->end_all(); }
  /// So many streams are left.
  void leave_streams(uint32_t count) {
    state_.header().stream_count.store(state_.sizes().streams - count);
  }
  /// A worker takes over what the keeper holds: a ring of process 0, which the last one had not
  /// counted yet, and the pidfd of a registered program, the same.
  void adopt_uncounted(pid_t pid) {
    ProcessCell& cell = state_.process(0);
    cell.pid = pid;
    cell.ring_chunks = kFirstChunks;
    cell.phase.store(static_cast<uint32_t>(ProcessPhase::kAttached));
    auto ring =
        ring::RingMemory::create(0, kRingSlots, (8u << 20) / kChunkBytes, kFirstChunks, false);
    state_.header().registered[0].pid = pid;
    std::vector<Kept> kept(2);
    kept[0].message = {KeepAction::kKeep, KeepKind::kProcess, 0, pid};
    kept[0].descriptors.push_back(connect());
    kept[0].descriptors.emplace_back(::dup(ring->fd()));
    kept[0].descriptors.emplace_back(proc::open_pidfd(pid));
    kept[1].message = {KeepAction::kKeep, KeepKind::kRegistered, 0, pid};
    kept[1].descriptors.emplace_back(proc::open_pidfd(pid));
    server_->adopt(std::move(kept));
  }
  uint32_t registered_count() { return state_.header().registered_count.load(); }
  const std::string& refusal() const { return nobody_.refusal; }
  const auto& notes() const { return nobody_.notes; }
  void leave_alone(const std::string& program) { server_->leave_alone({program}); }
  uint32_t process_count() { return state_.header().process_count.load(); }
  ProcessCell& process(uint32_t cell) { return state_.process(cell); }
  /// Goes on until `is_true`, if it comes to that.
  bool serve_until(const std::function<bool()>& is_true) {
    for (int i = 0; i < kPasses && !is_true(); ++i) {
      server_->poll(kPassNs);
      server_->advance(monotonic_ns());
    }
    return is_true();
  }
  bool is_done(uint32_t cell) {
    return process(cell).phase.load() >= static_cast<uint32_t>(ProcessPhase::kDrained);
  }
  uint64_t staged_count() { return agent::staged_count(state_, staging_); }
  bool is_over() const { return server_->is_over(monotonic_ns() + kPassNs * kPasses); }
  /// Exit code that the first process has in the end, or kUnknown.
  int exit_code() {
    ProcessCell& cell = state_.process(0);
    for (int i = 0; i < kPasses; ++i) {
      server_->poll(kPassNs);
      server_->advance(monotonic_ns());
      if (cell.phase.load() < static_cast<uint32_t>(ProcessPhase::kDrained)) continue;
      return cell.exit_code >= 0 ? cell.exit_code : kUnknown;
    }
    return 94;
  }

 private:
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  sockaddr_un address_{};
  UniqueFd listener_;
  UniqueFd state_fd_ = State::create().value();
  State state_ = State::map(state_fd_.get()).value();
  UniqueFd staging_fd_ = Staging::create(kStagingBytes).value();
  Staging staging_ = Staging::map(staging_fd_.get(), kStagingBytes).value();
  std::atomic<uint64_t> tail_{0};
  Inbox inbox_;
  ModeTable modes_;
  Nobody nobody_;
  std::optional<KeeperLink> keeper_;
  std::optional<Drainer> drainer_;
  std::optional<Server> server_;
  Following following_;
  UniqueFd signal_;
};

inline pid_t start_sleeper() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::pause();
  ::_exit(0);
}

inline void reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

inline void wait_for(int connection, pid_t pid) {
  auto registration = message_of<Register>(MessageType::kRegister);
  registration.pid = pid;
  send_struct(connection, registration);
  send_struct(connection, message_of<Wait>(MessageType::kWait));
}

inline void tell(int connection, pid_t pid, int exit_code) {
  auto exited = message_of<Exited>(MessageType::kExited);
  exited.pid = pid;
  exited.wait_status = W_EXITCODE(exit_code, 0);
  send_struct(connection, exited);
}

/// What `scene` returns on a kernel that tells nobody but the parent how a process has ended.
inline int on_old_kernel(const std::function<int(Agent&)>& scene,
                         Following following = Following::kAll) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (become_old_kernel() != 0) ::_exit(95);
    Agent agent(following);
    ::_exit(scene(agent));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The connection of a process that says it is `pid`.
inline UniqueFd say_hello(const Agent& agent, pid_t pid, uint64_t start_time_ticks = 0,
                          uint32_t clock_is_tsc = 0) {
  UniqueFd connection = agent.connect();
  auto hello = message_of<Hello>(MessageType::kHello);
  hello.pid = pid;
  hello.start_time_ticks = start_time_ticks;
  hello.clock_is_tsc = clock_is_tsc;
  hello.rank = 6;
  hello.world_size = 8;
  send_struct(connection.get(), hello);
  return connection;
}

inline bool is_attached(ProcessCell& cell) {
  return cell.phase.load() == static_cast<uint32_t>(ProcessPhase::kAttached);
}

}  // namespace aon::agent
