#include "launcher/agent_link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "core/base/lease.h"
#include "launcher/runtime_folder.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

class AgentLinkTest : public test::FolderFixture {
 protected:
  AgentLinkTest() { setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1); }
  ~AgentLinkTest() override { unsetenv("XDG_RUNTIME_DIR"); }
};

TEST_F(AgentLinkTest, makes_the_first_the_listener_and_joins_the_others) {
  const std::string path = socket_path("launch", "/out");
  auto first = join_or_listen(path);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_TRUE(first->listener && first->lock && !first->connection);
  auto second = join_or_listen(path);
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_TRUE(second->connection && !second->listener);
  ASSERT_TRUE(send_register(second->connection.get(), {42, 2, "/bin/true"}).has_value());
  const int accepted = accept(first->listener.get(), nullptr, nullptr);
  agent::Register packet{};
  ASSERT_EQ(recv(accepted, &packet, sizeof(packet), 0), static_cast<ssize_t>(sizeof(packet)));
  close(accepted);
  EXPECT_EQ(packet.header.type, agent::MessageType::kRegister);
  EXPECT_EQ(packet.pid, 42);
  EXPECT_EQ(packet.expected_local_ranks, 2u);
}

TEST_F(AgentLinkTest, takes_over_what_a_dead_listener_left) {
  const std::string path = socket_path("launch", "/out");
  { ASSERT_TRUE(join_or_listen(path).has_value()); }
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  auto again = join_or_listen(path);
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->listener);
}

TEST_F(AgentLinkTest, reads_the_last_words_of_an_agent_that_is_gone) {
  EXPECT_EQ(last_words_of_agent(folder_, 7), "");
  std::ofstream log(path("agent." + local_host_name() + ".log"));
  log << std::flush;
  EXPECT_EQ(last_words_of_agent(folder_, 7), "");
  log << "aon-agent[7] warning: worker 8 was killed; starting another\n" << std::flush;
  EXPECT_EQ(last_words_of_agent(folder_, 7), "") << "an agent goes on after a warning";
  log << "aon-agent[7] error: cannot fork a worker: Try again\n" << std::flush;
  log << "aon-agent[8] error: of another one\n" << std::flush;
  EXPECT_EQ(last_words_of_agent(folder_, 7), "cannot fork a worker: Try again");
}

int datagram_socket(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST_F(AgentLinkTest, removes_what_the_killed_left_and_nothing_else) {
  const std::string dead = socket_path("dead", "/out");
  const std::string living = socket_path("living", "/out");
  { ASSERT_TRUE(join_or_listen(dead).has_value()); }
  const auto agent = join_or_listen(living);
  ASSERT_TRUE(agent.has_value() && agent->lock);
  close(datagram_socket(dead + ".waiter"));
  const int waiter = datagram_socket(living + ".waiter");
  const std::string other = runtime_folder() + "/slurm-17";
  close(open(other.c_str(), O_WRONLY | O_CREAT, 0600));
  remove_leftovers(runtime_folder());
  for (const char* suffix : {"", ".lock", ".waiter"}) {
    EXPECT_NE(access((dead + suffix).c_str(), F_OK), 0) << suffix;
    EXPECT_EQ(access((living + suffix).c_str(), F_OK), 0) << suffix;
  }
  EXPECT_EQ(access(other.c_str(), F_OK), 0);
  close(waiter);
}

TEST_F(AgentLinkTest, removes_what_the_killed_left_among_however_many_notes) {
  constexpr int kNotes = 3000;
  constexpr int kDead = 20;
  ASSERT_TRUE(make_runtime_folder(runtime_folder()));
  for (int job = 0; job < kNotes; ++job) {
    const std::string note = runtime_folder() + "/slurm-" + std::to_string(job);
    close(open(note.c_str(), O_WRONLY | O_CREAT, 0600));
  }
  for (int launch = 0; launch < kDead; ++launch)
    ASSERT_TRUE(join_or_listen(socket_path(std::to_string(launch), "/out")).has_value());
  remove_leftovers(runtime_folder());
  for (int launch = 0; launch < kDead; ++launch)
    EXPECT_NE(access(socket_path(std::to_string(launch), "/out").c_str(), F_OK), 0) << launch;
}

TEST_F(AgentLinkTest, removes_notes_for_an_epilog_that_has_not_come_for_sixty_days) {
  ASSERT_TRUE(make_runtime_folder(runtime_folder()));
  const auto note = [](const std::string& job, time_t days) {
    std::string path = runtime_folder() + "/" + job;
    close(open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    const time_t then = time(nullptr) - days * 86'400;
    const timespec times[2] = {{then, 0}, {then, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  };
  const std::string old = note("slurm-1", 61);
  const std::string young = note("slurm-2", 59);
  const std::string other = note("slurm-x", 61);
  remove_leftovers(runtime_folder());
  EXPECT_NE(access(old.c_str(), F_OK), 0);
  EXPECT_EQ(access(young.c_str(), F_OK), 0);
  EXPECT_EQ(access(other.c_str(), F_OK), 0);
}

TEST_F(AgentLinkTest, leaves_a_listener_that_has_lost_its_lock) {
  const std::string path = socket_path("launch", "/out");
  auto link = join_or_listen(path);
  ASSERT_TRUE(link.has_value());
  link->lock.reset();
  remove_leftovers(runtime_folder());
  EXPECT_TRUE(connect_agent(path).has_value());
}

TEST_F(AgentLinkTest, does_not_join_another_users_listener) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can listen as somebody else";
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const std::string path = folder_ + "/0123";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const bool is_there = setgid(65534) == 0 && setuid(65534) == 0 &&
                          bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                          listen(fd, 1) == 0;
    (void)!write(ready[1], is_there ? "y" : "n", 1);
    pause();
    _exit(0);
  }
  char answer = 0;
  EXPECT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(chmod(path.c_str(), 0777), 0);
  const auto connection = connect_agent(path);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().message, "the agent on " + path + " is another user's");
  kill(stranger, SIGKILL);
  waitpid(stranger, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(AgentLinkTest, gives_up_soon_on_a_lock_without_a_listener) {
  const std::string path = socket_path("launch", "/out");
  ASSERT_TRUE(make_runtime_folder(runtime_folder()).has_value());
  const int lock = open((path + ".lock").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  EXPECT_FALSE(join_or_listen(path).has_value());
  close(lock);
}

/// The agent is there, and has not begun to take those who call.
TEST_F(AgentLinkTest, says_where_more_call_than_may_wait) {
  const std::string path = socket_path("launch", "/out");
  const auto agent = join_or_listen(path);
  ASSERT_TRUE(agent.has_value() && agent->listener);
  ASSERT_EQ(listen(agent->listener.get(), 1), 0);
  std::vector<UniqueFd> callers;
  while (Result<UniqueFd> caller = connect_agent(path)) callers.push_back(std::move(*caller));
  const auto one_more = join_or_listen(path);
  ASSERT_FALSE(one_more.has_value());
  EXPECT_EQ(one_more.error().code, Code::kBusy);
}

TEST_F(AgentLinkTest, elects_one_of_many) {
  const std::string path = socket_path("race", "/out");
  constexpr int kRanks = 16;
  int together[2];
  int tried[2];
  ASSERT_EQ(pipe(together), 0);
  ASSERT_EQ(pipe(tried), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      close(together[1]);
      const auto link = join_or_listen(path);
      (void)!write(tried[1], "t", 1);
      close(tried[1]);  // where a child fails the end of all is seen
      char byte = 0;
      (void)!read(together[0], &byte, 1);  // the winner listens until all have tried
      _exit(!link ? 2 : link->listener ? 1 : 0);
    }
    children.push_back(pid);
  }
  close(tried[1]);
  for (int rank = 0; rank < kRanks; ++rank) {
    char byte = 0;
    EXPECT_EQ(read(tried[0], &byte, 1), 1) << rank << " have tried";
  }
  close(tried[0]);
  close(together[1]);
  close(together[0]);
  int winner_count = 0;
  for (const pid_t pid : children) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_NE(WEXITSTATUS(status), 2);
    winner_count += WEXITSTATUS(status);
  }
  EXPECT_EQ(winner_count, 1);
}

TEST_F(AgentLinkTest, refuses_a_folder_that_others_can_enter) {
  const std::string folder = runtime_folder();
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  EXPECT_FALSE(join_or_listen(socket_path("launch", "/out")).has_value());
  ASSERT_EQ(rmdir(folder.c_str()), 0);
  ASSERT_EQ(symlink("/tmp", folder.c_str()), 0);
  EXPECT_FALSE(join_or_listen(socket_path("launch", "/out")).has_value());
}

TEST_F(AgentLinkTest, hands_listener_and_lock_to_the_agent) {
  auto link = join_or_listen(socket_path("launch", "/out"));
  ASSERT_TRUE(link.has_value());
  AgentArguments arguments;
  arguments.launch_id = "launch";
  arguments.options.output_dir = folder_;
  // A shell in the agent's place: 0 when 3 is a socket and 4 the lock file.
  const std::string script = path("agent");
  FILE* file = fopen(script.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("#!/bin/sh\ntest -S /dev/fd/3 && test -f /dev/fd/4 && test \"$LD_PRELOAD\" = ''\n", file);
  fclose(file);
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // it is nobody's child, so it becomes ours
  const auto pid = spawn_agent(script, *link, arguments);
  ASSERT_TRUE(pid.has_value()) << pid.error().message;
  int status = -1;
  waitpid(*pid, &status, 0);
  EXPECT_EQ(status, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_FALSE(spawn_agent(path("none"), *link, arguments).has_value());
}

TEST_F(AgentLinkTest, the_agent_starts_beside_the_core_that_its_rank_is_bound_to) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "one core";
  auto link = join_or_listen(socket_path("launch", "/out"));
  ASSERT_TRUE(link.has_value());
  AgentArguments arguments;
  arguments.options.output_dir = folder_;
  const std::string script = path("agent");
  std::ofstream(script) << "#!/bin/sh\nunset OMP_NUM_THREADS OMP_THREAD_LIMIT  # nproc heeds them\n"
                           "test $(nproc) -ge "
                        << CPU_COUNT(&allowed) << "\n";
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto pid = spawn_agent(script, *link, arguments);
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  ASSERT_TRUE(pid.has_value()) << pid.error().message;
  int status = -1;
  waitpid(*pid, &status, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AgentLinkTest, the_agent_is_no_child_of_a_program_that_waits_for_all_of_its) {
  auto link = join_or_listen(socket_path("launch", "/out"));
  ASSERT_TRUE(link.has_value());
  AgentArguments arguments;
  arguments.options.output_dir = folder_;
  ASSERT_TRUE(spawn_agent("/bin/true", *link, arguments).has_value());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace aon::launcher
