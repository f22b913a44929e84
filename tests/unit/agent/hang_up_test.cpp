// A connection that ends: the process has given up on the agent, or it dies, which its pidfd tells
// some time later.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "tests/unit/agent/served_agent.h"

namespace aon::agent {
namespace {

constexpr off_t kHeldBytes = 64 << 20;
constexpr int kKilled = 8;

/// A descriptor of memory that takes a while to free.
void hold_memory() {
  const int fd = ::memfd_create("held", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, kHeldBytes) != 0 || ::fallocate(fd, 0, 0, kHeldBytes) != 0)
    ::_exit(1);
}

/// A child in MPI_Init that stops, hangs up when it is let go on, and stops again. `is_slow`: its
/// connection is closed long before the end of it is seen.
pid_t start_in_init(const Agent& agent, bool is_slow) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
  if (is_slow) hold_memory();          // on both sides: kernels close in this order or in that
  UniqueFd connection = agent.connect();
  auto hello = message_of<Hello>(MessageType::kHello);
  hello.pid = ::getpid();
  hello.start_time_ticks = proc::start_time_ticks(hello.pid);
  hello.begun.raw_ns = clock::now_ticks(clock::TickSource::kMonotonicRaw);
  hello.begun.region = 12;
  std::strcpy(hello.begun.name, "MPI_Init");
  send_struct(connection.get(), hello);
  if (is_slow) hold_memory();
  ::raise(SIGSTOP);
  connection.reset();
  ::raise(SIGSTOP);
  ::_exit(0);
}

/// True when it has attached, and stopped since.
bool is_stopped(Agent& agent, pid_t child) {
  bool has_stopped = false;
  return agent.serve_until([&] {
    has_stopped |= ::waitpid(child, nullptr, WUNTRACED | WNOHANG) == child;
    return has_stopped && agent.process_count() == 1 && is_attached(agent.process(0));
  });
}

/// Records of a process that is killed.
int records_of(Agent& agent, pid_t child) {
  ::kill(child, SIGKILL);
  const bool is_seen = agent.serve_until([&] { return agent.is_done(0); });
  reap(child);
  return is_seen ? static_cast<int>(agent.staged_count()) : 96;
}

int kill_in_init(Agent& agent) {
  const pid_t child = start_in_init(agent, true);
  return is_stopped(agent, child) ? records_of(agent, child) : 98;
}

int hang_up_in_init(Agent& agent) {
  const pid_t child = start_in_init(agent, false);
  const bool has_come = is_stopped(agent, child);
  ::kill(child, SIGCONT);
  if (!has_come || !is_stopped(agent, child)) return 97;
  agent.poll();
  return is_attached(agent.process(0)) ? records_of(agent, child) : 98;
}

TEST(HangUp, shows_the_call_of_a_process_that_was_killed_in_it) {
  for (int i = 0; i < kKilled; ++i) EXPECT_EQ(on_old_kernel(kill_in_init), 1) << i;
}

TEST(HangUp, forgets_the_call_of_a_process_that_hung_up_and_lives) {
  EXPECT_EQ(on_old_kernel(hang_up_in_init), 0);
}

/// A child that connects, and says Hello or nothing; it is killed then, or leaves with 0.
int die_early(Agent& agent, bool says_hello, bool is_killed) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
    const pid_t own = ::getpid();
    const UniqueFd connection =
        says_hello ? say_hello(agent, own, proc::start_time_ticks(own)) : agent.connect();
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  if (!says_hello) agent.poll();  // it sees who connects
  ::kill(child, is_killed ? SIGKILL : SIGCONT);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  agent.poll();
  ::waitpid(child, nullptr, 0);
  if (agent.notes().empty()) return 0;
  const auto& [note, program] = agent.notes()[0];
  const std::string own = std::filesystem::read_symlink("/proc/self/exe");
  // Its Hello tells no program here.
  const std::string number = std::to_string(child);
  const bool is_named = note == RecordingNote::kKilledEarly &&
                        program == (says_hello ? "process " + number : own + " (" + number + ")");
  return is_named ? 1 : 2;
}

TEST(HangUp, names_a_process_that_was_killed_before_it_had_an_answer) {
  for (const bool says_hello : {false, true}) {
    const auto die = [&](bool is_killed) {
      return on_old_kernel([&](Agent& agent) { return die_early(agent, says_hello, is_killed); });
    };
    EXPECT_EQ(die(true), 1) << says_hello;
    EXPECT_EQ(die(false), 0) << "it has ended by itself";
  }
}

}  // namespace
}  // namespace aon::agent
