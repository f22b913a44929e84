#include "launcher/waiter.h"
#include "core/base/time.h"

#include <aon/standing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/agent/protocol.h"
#include "launcher/descriptors.h"
#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

struct Pair {
  UniqueFd first;
  UniqueFd second;
};

Pair pipe_pair() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Pair socket_pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Whether nobody holds the other end, within `timeout_ms`.
bool has_hung_up(const UniqueFd& pipe, int timeout_ms) {
  pollfd entry{pipe.get(), POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLHUP) != 0;
}

/// A waiter that has one pipe as its stderr, and a program that says what ranks say.
class Waiter : public test::FolderFixture {
 protected:
  Waiter() {
    setenv("AON_SOCKET", path("agent").c_str(), 1);
    setenv("PMI_FD", "9", 1);
    Result<UniqueFd> notices = open_notices(path("agent"));
    EXPECT_TRUE(notices.has_value());
    notices_.reset(notices ? notices->release() : -1);
    const UniqueFd own(dup(STDERR_FILENO));
    dup2(first_.second.get(), STDERR_FILENO);
    const int connection = agent_.second.get();
    const Status status = start_waiter({connection, notices_.get()}, [&] {
      const bool has_ended = wait_for_descriptor(connection, notices_.get(), -1, 20'000);
      (void)!write(STDERR_FILENO, has_ended ? "end" : "???", 3);
    });
    dup2(own.get(), STDERR_FILENO);
    EXPECT_TRUE(status.has_value());
    first_.second.reset();
    agent_.second.reset();
    notices_.reset();
  }
  ~Waiter() override {
    unsetenv("AON_SOCKET");
    unsetenv("PMI_FD");
  }

  static void lend(const UniqueFd& pipe) { lend(pipe, pipe); }
  /// As a rank whose stderr is `pipe`, of an aon-run whose was `begun_with`.
  static void lend(const UniqueFd& pipe, const UniqueFd& begun_with) {
    const pid_t rank = fork();
    if (rank == 0) {
      struct stat status {};
      fstat(begun_with.get(), &status);
      setenv(agent::kStderrVariable, fmt::format("{}:{}", status.st_dev, status.st_ino).c_str(), 1);
      dup2(pipe.get(), STDERR_FILENO);
      aon_lend_stderr();
      _exit(0);
    }
    waitpid(rank, nullptr, 0);
  }
  void end_of_files() { EXPECT_EQ(send(agent_.first.get(), "x", 1, 0), 1); }

  static std::string text_of(const UniqueFd& pipe) {
    char text[16] = {};
    const ssize_t count = read(pipe.get(), text, sizeof(text));
    return {text, static_cast<size_t>(count > 0 ? count : 0)};
  }

  Pair first_ = pipe_pair();
  Pair agent_ = socket_pair();
  UniqueFd notices_;
};

TEST_F(Waiter, holds_stderr_where_nobody_says_anything) {
  EXPECT_FALSE(has_hung_up(first_.first, 100));
  end_of_files();
  EXPECT_EQ(text_of(first_.first), "end");
  EXPECT_TRUE(has_hung_up(first_.first, 10'000));
}

TEST_F(Waiter, is_no_other_users_that_only_has_its_name) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a socket away";
  ASSERT_EQ(chown(path("agent.waiter").c_str(), 65534, 65534), 0);
  const Pair other = pipe_pair();
  lend(other.second);
  aon_take_back_stderr();
  end_of_files();
  EXPECT_EQ(text_of(first_.first), "end") << "nobody asked for it";
}

TEST_F(Waiter, counts_its_time_from_the_end_of_the_program) {
  const int64_t start_ms = now_ms();
  const pid_t pid = fork();
  if (pid == 0) {
    usleep(400'000);
    _exit(0);
  }
  const UniqueFd program(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const Pair files = socket_pair();
  EXPECT_FALSE(wait_for_descriptor(files.first.get(), -1, program.get(), 50));
  EXPECT_GE(now_ms() - start_ms, 400);
  waitpid(pid, nullptr, 0);
  end_of_files();
}

TEST_F(Waiter, lets_go_of_stderr_while_ranks_may_fail) {
  aon_take_back_stderr();
  EXPECT_TRUE(has_hung_up(first_.first, 10'000));
}

TEST_F(Waiter, holds_what_a_rank_lends_that_ends_at_once) {
  aon_take_back_stderr();
  Pair second = pipe_pair();
  lend(second.second);
  second.second.reset();
  EXPECT_FALSE(has_hung_up(second.first, 100));
  end_of_files();
  EXPECT_EQ(text_of(second.first), "end");
  EXPECT_TRUE(has_hung_up(second.first, 10'000));
}

/// It may be a file with the program's data.
TEST_F(Waiter, is_lent_nothing_that_the_program_opened_itself) {
  aon_take_back_stderr();
  Pair second = pipe_pair();
  lend(second.second, first_.first);
  second.second.reset();
  EXPECT_TRUE(has_hung_up(second.first, 10'000));
  end_of_files();
  EXPECT_EQ(text_of(second.first), "");
}

TEST_F(Waiter, hears_of_stderr_before_it_says_that_the_files_are_there) {
  aon_take_back_stderr();
  Pair second = pipe_pair();
  lend(second.second);
  end_of_files();
  second.second.reset();
  EXPECT_EQ(text_of(second.first), "end");
}

TEST_F(Waiter, is_told_nothing_under_another_launcher) {
  unsetenv("PMI_FD");
  aon_take_back_stderr();
  EXPECT_FALSE(has_hung_up(first_.first, 100));
  end_of_files();
}

TEST_F(Waiter, takes_no_notice_of_what_it_does_not_know) {
  const UniqueFd stranger(socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_storage address{};
  address.ss_family = AF_UNIX;
  path("agent.waiter").copy(reinterpret_cast<char*>(&address) + sizeof(address.ss_family), 100);
  for (const char* text : {"", "x", "longer than a notice", "\2"}) {
    EXPECT_GE(sendto(stranger.get(), text, strlen(text), 0, reinterpret_cast<sockaddr*>(&address),
                     sizeof(sa_family_t) + path("agent.waiter").size() + 1),
              0);
  }
  EXPECT_FALSE(has_hung_up(first_.first, 100));
  end_of_files();
  EXPECT_EQ(text_of(first_.first), "end");
}

}  // namespace
}  // namespace aon::launcher
