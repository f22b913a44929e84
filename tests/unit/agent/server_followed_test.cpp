// What the agent makes of programs that compute without a word, and of the word of one that is
// followed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <filesystem>

#include "tests/unit/agent/served_agent.h"

namespace aon::agent {
namespace {

/// A child that computes, and says Hello when there is something to read from `word`: with a start
/// time that is not its own.
pid_t start_busy(const Agent& agent, int word) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
  char byte = 0;
  ::fcntl(word, F_SETFL, O_NONBLOCK);
  while (::read(word, &byte, 1) != 1) {
  }
  const UniqueFd connection = say_hello(agent, ::getpid(), 1);
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

TEST(ServerFollowed, takes_a_program_that_computes_for_a_process_and_its_word_for_the_same) {
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

/// It writes a file of its own then, and would be in the job twice.
TEST(ServerFollowed, takes_no_program_for_a_process_that_an_earlier_worker_refused) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        const pid_t child = ::fork();
        if (child == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
          ::raise(SIGSTOP);
          const UniqueFd connection = say_hello(agent, ::getpid(), 1, 2);  // no such clock
          for (volatile int i = 0;;) i = i + 1;
        }
        ::waitpid(child, nullptr, WUNTRACED);
        const UniqueFd parent = agent.connect();
        wait_for(parent.get(), child);
        agent.poll();
        ::kill(child, SIGCONT);
        const auto has_used = [&](uint64_t cpu_ns) { return proc::cpu_time_ns(child) > cpu_ns; };
        for (int i = 0; i < 10 && !has_used(kBusyCpuNs / 4); ++i)
          agent.serve_until([&] { return has_used(kBusyCpuNs / 4); });
        if (!has_used(kBusyCpuNs / 4)) return 1;
        agent.replace_worker();
        for (int i = 0; i < 20 && !has_used(5 * kBusyCpuNs / 2); ++i)
          agent.serve_until([&] { return has_used(5 * kBusyCpuNs / 2); });
        const bool was_busy = has_used(5 * kBusyCpuNs / 2);
        reap(child);
        return was_busy ? static_cast<int>(agent.process_count()) * 3 : 2;
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

TEST(ServerFollowed, takes_no_program_for_a_process_while_others_are_below_it) {
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

TEST(ServerFollowed, takes_no_program_for_a_process_when_it_is_to_end) {
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

TEST(ServerFollowed, takes_no_program_for_a_process_that_sleeps) {
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

/// A child that only waits above one that computes, whose pid it writes to `told`.
pid_t start_above_busy(int told) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(600);  // the same: it outlives its parent
    for (volatile int i = 0;;) i = i + 1;
  }
  if (::write(told, &child, sizeof(child)) != sizeof(child)) ::_exit(1);
  ::pause();
  ::_exit(0);
}

/// Where it `is_followed`; else it computes for longer than it takes to be, and is not.
int follow_what_a_silent_program_has_started(Agent& agent, bool is_followed) {
  int told[2];
  if (::pipe(told) != 0) return 97;
  const pid_t above = start_above_busy(told[1]);
  pid_t child = 0;
  if (::read(told[0], &child, sizeof(child)) != sizeof(child)) return 98;
  auto registration = message_of<Register>(MessageType::kRegister);
  registration.pid = above;
  registration.rank = 3;
  registration.world_size = 5;
  const UniqueFd connection = agent.connect();
  send_struct(connection.get(), registration);
  const auto is_there = [&] { return agent.process_count() == 1; };
  const auto is_ignored = [&] {
    return !is_followed && proc::cpu_time_ns(child) > 5 * kBusyCpuNs / 2;
  };
  const auto is_known = [&] { return is_there() || is_ignored(); };
  for (int i = 0; i < 10 && !is_known(); ++i) agent.serve_until(is_known);
  if (!is_there()) {
    const bool was_busy = is_ignored();
    reap(above);
    ::kill(child, SIGKILL);
    return was_busy ? 1 : 6;
  }
  ProcessCell& cell = agent.process(0);
  const bool is_child = cell.pid == child && cell.rank == 3 && cell.world_size == 5 &&
                        cell.is_followed == static_cast<uint32_t>(Followed::kBelow);
  const bool is_open = !agent.is_over();
  reap(above);  // what it has started goes on, and holds nothing up
  const bool is_left = agent.serve_until([&] { return agent.is_done(0); });
  const bool runs_on = ::kill(child, 0) == 0;
  ::kill(child, SIGKILL);
  if (!is_child) return 1;
  if (!is_open) return 2;
  if (!is_left || !runs_on) return 3;
  if (cell.exit_code != -1 || cell.exit_signal != 0 || cell.is_cut_off != 0) return 4;
  return agent.serve_until([&] { return agent.is_over(); }) ? 0 : 5;
}

TEST(ServerFollowed, takes_what_a_program_has_started_for_a_process_when_that_computes) {
  const auto with = [](bool is_followed) {
    return
        [=](Agent& agent) { return follow_what_a_silent_program_has_started(agent, is_followed); };
  };
  EXPECT_EQ(on_old_kernel(with(true), Following::kBusy), 0);
  EXPECT_EQ(on_old_kernel(with(false), Following::kNobody), 1);
}

/// As torchrun's do: they load PyTorch before their first word.
int take_over_what_a_launcher_has_started(Agent& agent) {
  int word[2];
  int told[2];
  if (::pipe(word) != 0 || ::pipe(told) != 0) return 97;
  const pid_t above = ::fork();
  if (above == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a scene may go wrong
    const pid_t child = start_busy(agent, word[0]);
    if (::write(told[1], &child, sizeof(child)) != sizeof(child)) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t child = 0;
  if (::read(told[0], &child, sizeof(child)) != sizeof(child)) return 98;
  auto registration = message_of<Register>(MessageType::kRegister);
  registration.pid = above;
  registration.rank = 3;
  registration.world_size = 5;
  const UniqueFd connection = agent.connect();
  send_struct(connection.get(), registration);
  const auto is_there = [&] { return agent.process_count() == 1; };
  for (int i = 0; i < 10 && !is_there(); ++i) agent.serve_until(is_there);
  ProcessCell& cell = agent.process(0);
  const bool is_below = is_there() && cell.rank == 3 && cell.world_size == 5;
  const bool is_told = is_below && ::write(word[1], "w", 1) == 1 &&
                       agent.serve_until([&] { return cell.is_followed.load() == 0; });
  reap(above);
  ::kill(child, SIGKILL);
  if (!is_below) return 1;
  if (!is_told || agent.process_count() != 1) return 2;
  return cell.rank == 6 && cell.world_size == 8 ? 0 : 3;
}

TEST(ServerFollowed, takes_the_rank_of_what_a_launcher_has_started_from_its_own_word) {
  EXPECT_EQ(on_old_kernel(take_over_what_a_launcher_has_started, Following::kBusy), 0);
}

TEST(ServerFollowed, says_of_a_program_on_the_list_that_it_is_left_alone) {
  const int code = on_old_kernel(
      [](Agent& agent) {
        int word[2];
        if (::pipe(word) != 0) return 97;
        const pid_t child = start_busy(agent, word[0]);
        const std::string own = std::filesystem::read_symlink("/proc/self/exe");
        agent.leave_alone(own);
        const UniqueFd parent = agent.connect();
        wait_for(parent.get(), child);
        const auto is_said = [&] { return !agent.notes().empty(); };
        for (int i = 0; i < 10 && !is_said(); ++i) agent.serve_until(is_said);
        reap(child);
        if (!is_said() || agent.process_count() != 0) return 1;
        return agent.notes()[0] == std::pair(RecordingNote::kLeftAlone, own) ? 0 : 2;
      },
      Following::kBusy);
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace aon::agent
