// Who may tell the agent how a process has ended, where the kernel does not; whom it takes on when
// it is short of descriptors; and what it makes of processes whose pids are not those it sees, and
// of programs that compute without a word.
#include "core/agent/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <optional>

#include "core/agent/staging.h"
#include "core/agent/timing.h"
#include "core/base/packet.h"
#include "tests/old_kernel.h"
#include "tests/unit/sanitizer.h"

namespace aon::agent {
namespace {

constexpr uint64_t kStagingBytes = 32 * 4096;
constexpr uint64_t kPassNs = 10'000'000;
constexpr int kPasses = 500;
constexpr int kUnknown = 99;
constexpr int kFewDescriptors = 64;
constexpr int kNotAllowed = 77;

class Nobody : public ProcessListener {
 public:
  void process_started(uint32_t /*process*/, int32_t /*pid*/, int32_t /*rank*/) override {}
  void process_ended(uint32_t /*process*/, std::vector<int32_t> /*tids*/) override {}
  void process_refused(const Error& reason) override { refusal = reason.message; }

  std::string refusal;
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
  explicit Agent(Following following = Following::kAll) {
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
  /// As with SIGTERM.
  void end_soon() {
    signal_.reset(::eventfd(1, EFD_CLOEXEC));
    server_->watch_signals(signal_.get());
  }
  const std::string& refusal() const { return nobody_.refusal; }
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
  UniqueFd signal_;
};

pid_t start_sleeper() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::pause();
  ::_exit(0);
}

void reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void wait_for(int connection, pid_t pid) {
  auto registration = message_of<Register>(MessageType::kRegister);
  registration.pid = pid;
  send_struct(connection, registration);
  send_struct(connection, message_of<Wait>(MessageType::kWait));
}

void tell(int connection, pid_t pid, int exit_code) {
  auto exited = message_of<Exited>(MessageType::kExited);
  exited.pid = pid;
  exited.wait_status = W_EXITCODE(exit_code, 0);
  send_struct(connection, exited);
}

/// What `scene` returns on a kernel that tells nobody but the parent how a process has ended.
int on_old_kernel(const std::function<int(Agent&)>& scene, Following following = Following::kAll) {
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
UniqueFd say_hello(const Agent& agent, pid_t pid, uint64_t start_time_ticks = 0) {
  UniqueFd connection = agent.connect();
  auto hello = message_of<Hello>(MessageType::kHello);
  hello.pid = pid;
  hello.start_time_ticks = start_time_ticks;
  send_struct(connection.get(), hello);
  return connection;
}

/// A child that computes, and says Hello when there is something to read from `word`.
pid_t start_busy(const Agent& agent, int word) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
  char byte = 0;
  ::fcntl(word, F_SETFL, O_NONBLOCK);
  while (::read(word, &byte, 1) != 1) {
  }
  const pid_t own = ::getpid();
  const UniqueFd connection = say_hello(agent, own, proc::start_time_ticks(own));
  ::pause();
  ::_exit(0);
}

/// A child that computes above one of its own, which ends when there is something to read from
/// `word`, and whose pid it writes to `told`.
pid_t start_busy_parent(int word, int told) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) ::_exit(::read(word, &byte, 1) == 1 ? 0 : 1);
  if (::write(told, &child, sizeof(child)) != sizeof(child)) ::_exit(1);
  for (;;) ::waitpid(child, nullptr, WNOHANG);
}

/// Takes descriptors until `left` are.
void leave_descriptors(int left) {
  const rlimit few{kFewDescriptors, kFewDescriptors};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(96);
  int last = 0;
  while (last >= 0 && last < kFewDescriptors - left - 1) last = ::dup(STDERR_FILENO);
}

bool is_attached(ProcessCell& cell) {
  return cell.phase.load() == static_cast<uint32_t>(ProcessPhase::kAttached);
}

/// The agent of a PID namespace, with a process of its own, meets one of outside that has the same
/// pid there: `to_outside` gets that pid, then a word that it may go.
int serve_in_namespace(Agent& agent, int to_outside) {
  const pid_t child = ::fork();
  if (child == 0) {
    const UniqueFd connection = say_hello(agent, ::getpid());
    ::pause();
  }
  if (!agent.serve_until([&] { return agent.process_count() == 1; })) return 1;
  if (::write(to_outside, &child, sizeof(child)) != sizeof(child)) return 2;
  if (!agent.serve_until([&] { return agent.process_count() == 2; })) return 3;
  ProcessCell& own = agent.process(0);
  ProcessCell& other = agent.process(1);
  if (own.pid != child || other.pid != child || other.pid_here() != 0) return 4;
  if (!is_attached(own)) return 5;
  reap(child);
  if (!agent.serve_until([&] { return !is_attached(own); })) return 6;
  if (!is_attached(other)) return 7;
  if (::write(to_outside, &child, sizeof(child)) != sizeof(child)) return 8;
  return agent.serve_until([&] { return !is_attached(other); }) ? 0 : 9;
}

TEST(Server, takes_no_process_of_another_pid_namespace_for_one_of_its_own) {
  const int code = on_old_kernel([](Agent& agent) {
    int pipe[2];
    if (::pipe(pipe) != 0 || ::unshare(CLONE_NEWPID) != 0) return kNotAllowed;
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(serve_in_namespace(agent, pipe[1]));
    ::close(pipe[1]);
    pid_t pid = 0;
    UniqueFd connection;
    if (::read(pipe[0], &pid, sizeof(pid)) == sizeof(pid)) connection = say_hello(agent, pid);
    if (::read(pipe[0], &pid, sizeof(pid)) == sizeof(pid)) connection.reset();
    int status = 0;
    ::waitpid(inner, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  });
  if (code == kNotAllowed) GTEST_SKIP() << "namespaces are not allowed here";
  EXPECT_EQ(code, 0);
}

TEST(Server, sends_away_who_calls_when_no_descriptor_is_left) {
#ifdef AON_TEST_IS_SANITIZED
  GTEST_SKIP() << "UBSan needs descriptors to look at the types of objects";
#endif
  const int code = on_old_kernel([](Agent& agent) {
    const UniqueFd caller = agent.connect();
    const UniqueFd next = agent.connect();
    leave_descriptors(0);
    agent.poll();
    const bool are_gone = proc::has_hung_up(caller.get()) && proc::has_hung_up(next.get());
    return are_gone && !agent.refusal().empty() ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST(Server, leaves_the_last_descriptors_to_files) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    leave_descriptors(8);
    wait_for(parent.get(), child);
    agent.poll();
    const bool is_followed = !agent.is_over();
    reap(child);
    if (agent.process_count() != 0 || agent.refusal().empty()) return 1;
    return is_followed ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST(Server, hears_from_a_parent_how_its_child_has_ended) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);
    agent.poll();
    tell(parent.get(), child, 3);
    reap(child);
    return agent.exit_code();
  });
  EXPECT_EQ(code, 3);
}

TEST(Server, hears_it_of_a_parent_that_has_gone) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);
    agent.poll();
    reap(child);
    tell(parent.get(), child, 3);
    parent.reset();
    return agent.exit_code();
  });
  EXPECT_EQ(code, 3);
}

TEST(Server, keeps_a_parent_whose_child_was_gone_before_it_was_heard) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);
    tell(parent.get(), child, 3);
    reap(child);
    agent.poll();
    return proc::has_hung_up(parent.get()) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(Server, takes_a_program_that_computes_for_a_process_and_its_word_for_the_same) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        int word[2];
        if (::pipe(word) != 0) return 97;
        const pid_t child = start_busy(agent, word[0]);
        auto registration = message_of<Register>(MessageType::kRegister);
        registration.pid = child;
        registration.rank = 3;
        const UniqueFd parent = agent.connect();
        send_struct(parent.get(), registration);
        agent.poll();
        if (agent.process_count() != 0) return 1;
        const auto is_there = [&] { return agent.process_count() == 1; };
        for (int i = 0; i < 10 && !is_there(); ++i) agent.serve_until(is_there);
        if (!is_there()) return 2;
        ProcessCell& cell = agent.process(0);
        if (cell.pid != child || cell.rank != 3 || cell.is_followed.load() != 1) return 3;
        if (proc::cpu_time_ns(child) < kBusyCpuNs) return 4;
        if (::write(word[1], "w", 1) != 1) return 98;
        if (!agent.serve_until([&] { return cell.is_followed.load() == 0; })) return 5;
        reap(child);
        if (!agent.serve_until([&] { return !is_attached(cell); })) return 6;
        return agent.process_count() == 1 ? 0 : 7;
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

TEST(Server, takes_no_program_for_a_process_while_others_are_below_it) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        int word[2];
        int told[2];
        if (::pipe(word) != 0 || ::pipe(told) != 0) return 97;
        const pid_t parent = start_busy_parent(word[0], told[1]);
        pid_t child = 0;
        if (::read(told[0], &child, sizeof(child)) != sizeof(child)) return 98;
        const UniqueFd first = agent.connect();
        const UniqueFd second = agent.connect();
        wait_for(first.get(), parent);
        wait_for(second.get(), child);
        const auto has_used = [&](uint64_t cpu_ns) { return proc::cpu_time_ns(parent) > cpu_ns; };
        for (int i = 0; i < 20 && !has_used(5 * kBusyCpuNs / 2); ++i)
          agent.serve_until([&] { return has_used(5 * kBusyCpuNs / 2); });
        if (!has_used(2 * kBusyCpuNs)) return 96;
        if (agent.process_count() != 0) return 1;
        if (::write(word[1], "w", 1) != 1) return 99;
        const auto is_there = [&] { return agent.process_count() == 1; };
        for (int i = 0; i < 10 && !is_there(); ++i) agent.serve_until(is_there);
        const bool is_parent = is_there() && agent.process(0).pid == parent;
        reap(parent);
        return is_parent ? 0 : 2;
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

TEST(Server, takes_no_program_for_a_process_when_it_is_to_end) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        int word[2];
        if (::pipe(word) != 0) return 97;
        const pid_t child = start_busy(agent, word[0]);
        const UniqueFd parent = agent.connect();
        wait_for(parent.get(), child);
        agent.poll();
        agent.end_soon();
        const auto is_busy = [&] { return proc::cpu_time_ns(child) > 5 * kBusyCpuNs / 2; };
        for (int i = 0; i < 20 && !is_busy(); ++i) agent.serve_until(is_busy);
        const bool was_busy = is_busy();
        reap(child);
        return was_busy ? static_cast<int>(agent.process_count()) : 98;
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

TEST(Server, takes_no_program_for_a_process_that_sleeps) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        const pid_t child = start_sleeper();
        const UniqueFd parent = agent.connect();
        wait_for(parent.get(), child);
        int passes = 0;
        agent.serve_until([&] { return ++passes > 150; });
        reap(child);
        return static_cast<int>(agent.process_count());
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

TEST(Server, believes_nobody_else) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    int told[2];
    if (::pipe(told) != 0) return 97;
    const pid_t stranger = ::fork();
    if (stranger == 0) {
      const UniqueFd fd = agent.connect();
      wait_for(fd.get(), child);
      tell(fd.get(), child, 3);
      if (::write(told[1], "t", 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(told[1]);
    char byte = 0;
    if (::read(told[0], &byte, 1) != 1) return 98;
    agent.poll();
    reap(child);
    reap(stranger);
    return agent.exit_code();
  });
  EXPECT_EQ(code, kUnknown);
}

TEST(Server, believes_a_parent_of_no_other_process) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const pid_t other = start_sleeper();
    const UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);
    agent.poll();
    const UniqueFd of_other = agent.connect();
    wait_for(of_other.get(), other);
    agent.poll();
    tell(of_other.get(), child, 3);
    reap(child);
    const int result = agent.exit_code();
    reap(other);
    return result;
  });
  EXPECT_EQ(code, kUnknown);
}

TEST(Server, takes_what_a_parent_says_only_when_it_waits) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    auto registration = message_of<Register>(MessageType::kRegister);
    registration.pid = child;
    send_struct(parent.get(), registration);
    tell(parent.get(), child, 3);
    agent.poll();
    reap(child);
    return agent.exit_code();
  });
  EXPECT_EQ(code, kUnknown);
}

}  // namespace
}  // namespace aon::agent
