// Who may tell the agent how a process has ended, where the kernel does not; whom it takes on when
// it is short of descriptors; and what it makes of processes whose pids are not those it sees.
#include "core/agent/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include "tests/unit/agent/served_agent.h"
#include "tests/unit/sanitizer.h"

namespace aon::agent {
namespace {

constexpr int kFewDescriptors = 64;
constexpr int kNotAllowed = 77;

/// Takes descriptors until `left` are.
void leave_descriptors(int left) {
  const rlimit few{kFewDescriptors, kFewDescriptors};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(96);
  int last = 0;
  while (last >= 0 && last < kFewDescriptors - left - 1) last = ::dup(STDERR_FILENO);
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

/// It writes a file of its own: here its records would be lost, and not counted.
TEST(Server, sends_away_who_comes_when_few_streams_are_left) {
  const int code = on_old_kernel([](Agent& agent) {
    agent.leave_streams(kMaxStreams / 16 + 1);
    const UniqueFd first = say_hello(agent, ::getpid());
    agent.poll();
    if (agent.process_count() != 1) return 1;
    agent.leave_streams(kMaxStreams / 16);
    const UniqueFd late = say_hello(agent, ::getpid());
    agent.poll();
    MessageHeader answer{};
    const bool is_answered = ::recv(late.get(), &answer, sizeof(answer), MSG_DONTWAIT) > 0;
    if (!is_answered || answer.type != MessageType::kRefused) return 2;
    return agent.process_count() == 1 && !agent.refusal().empty() ? 0 : 3;
  });
  EXPECT_EQ(code, 0);
}

/// A keeper that hangs in a file system has not heard yet that it is to let go of them.
TEST(Server, rests_when_others_hold_what_has_ended) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);
    agent.poll();
    const pid_t holder = start_sleeper();  // has all descriptors
    reap(child);
    ::shutdown(parent.get(), SHUT_RDWR);
    agent.serve_until([&] { return agent.is_done(0); });
    agent.poll();
    constexpr uint64_t kRestNs = 200'000'000;
    const uint64_t idle_ns = agent.idle_ns(kRestNs);
    reap(holder);
    return idle_ns >= kRestNs / 2 ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

/// The next one would get the same number.
TEST(Server, counts_whom_a_killed_worker_gave_to_the_keeper_alone) {
  const int code = on_old_kernel([](Agent& agent) {
    const pid_t child = start_sleeper();
    agent.adopt_uncounted(child);
    const UniqueFd next = say_hello(agent, ::getpid());
    agent.poll();
    const bool is_counted = agent.registered_count() == 1 && agent.process_count() == 2;
    const bool is_another = agent.process(0).pid == child && agent.process(1).pid == ::getpid();
    reap(child);
    return is_counted && is_another ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST(Server, sends_away_who_comes_when_all_have_ended) {
  const int code = on_old_kernel([](Agent& agent) {
    const UniqueFd first = say_hello(agent, ::getpid());
    agent.poll();
    if (agent.process_count() != 1 || !agent.end_all()) return 1;
    const UniqueFd late = say_hello(agent, ::getpid());
    const pid_t child = start_sleeper();
    const UniqueFd parent = agent.connect();
    wait_for(parent.get(), child);  // it would be followed
    agent.poll();
    reap(child);
    MessageHeader answer{};
    const bool is_answered = ::recv(late.get(), &answer, sizeof(answer), MSG_DONTWAIT) > 0;
    if (!is_answered || answer.type != MessageType::kRefused) return 2;
    return agent.process_count() == 1 ? 0 : 3;
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
