#include "launcher/parent.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>

#include "tests/unit/folder_fixture.h"

namespace aon::launcher {
namespace {

void sleep_ms(long ms) {
  const timespec pause{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

/// Waits up to 5 s for `path` to appear.
bool appears(const std::string& path) {
  for (int i = 0; i < 500; ++i) {
    if (access(path.c_str(), F_OK) == 0) return true;
    sleep_ms(10);
  }
  return false;
}

/// Signals that this process gets and does not take, until it asks.
class Kept {
 public:
  Kept(std::initializer_list<int> numbers) {
    sigemptyset(&set_);
    for (const int number : numbers) sigaddset(&set_, number);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Kept() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// The number of one that has come; -1: none.
  int take(siginfo_t* info = nullptr) const {
    const timespec no_wait{0, 0};
    return sigtimedwait(&set_, info, &no_wait);
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

class ParentOfRank : public test::FolderFixture {
 protected:
  /// Runs `script` below a Parent in a process of its own, as aon-run does, which calls `first`.
  pid_t start(
      const std::string& script, const std::function<void()>& first = [] {}) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setpgid(0, 0);
    first();
    auto parent = Parent::start({"sh", "-c", script});
    if (!parent) _exit(99);
    parent->close_descriptors(-1);
    end_like(parent->wait_for_program());
  }
  /// The same as the session of a terminal, `slave`.
  pid_t start_at_terminal(const std::string& script, int slave) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    auto parent = Parent::start({"sh", "-c", script});
    if (!parent) _exit(99);
    parent->close_descriptors(-1);
    end_like(parent->wait_for_program());
  }
  /// A program that counts each delivery of SIGUSR1 and SIGINT, and exits 7 on SIGTERM.
  std::string counter(const std::string& first = "") {
    std::ofstream(path("count.py")) << "import os, signal, sys\n"
                                    << first << R"(
read_end, write_end = os.pipe()
os.set_blocking(write_end, False)
signal.set_wakeup_fd(write_end)
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: None)
open(sys.argv[1] + "/ready", "w").close()
count = 0
while True:
    for number in os.read(read_end, 100):
        count += number in (signal.SIGUSR1, signal.SIGINT)
        if number == signal.SIGTERM:
            open(sys.argv[1] + "/got", "w").write(str(count))
            os._exit(7)
)";
    return "exec /usr/bin/python3 " + path("count.py") + " " + folder_;
  }
  pid_t start_counter(const std::string& first = "") { return start(counter(first)); }
  int status_of(pid_t pid) {
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
  std::string ready() const { return path("ready"); }
  /// A script that tells when it is there, then waits for signals.
  std::string waiting(const std::string& traps) const {
    return traps + " touch " + ready() + "; while :; do sleep 0.02; done";
  }
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ParentOfRank, exits_as_the_program_does) {
  for (const int code : {0, 1, 3, 126, 255}) {
    const int status = status_of(start("exit " + std::to_string(code)));
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), code);
  }
}

TEST_F(ParentOfRank, tells_the_end_while_the_program_is_a_zombie) {
  for (const auto& [script, wait_status] :
       {std::pair("exit 3", W_EXITCODE(3, 0)), {"kill -KILL $$", W_EXITCODE(0, SIGKILL)}}) {
    const pid_t pid = fork();
    if (pid == 0) {
      auto parent = Parent::start({"sh", "-c", script});
      if (!parent) _exit(99);
      bool is_told = false;
      const ProgramEnd end = parent->wait_for_program([&](const ProgramEnd& seen) {
        siginfo_t zombie{};
        waitid(P_PID, static_cast<id_t>(parent->child()), &zombie, WEXITED | WNOHANG | WNOWAIT);
        is_told = zombie.si_pid == parent->child() && seen.wait_status == wait_status;
      });
      const bool is_reaped = waitpid(parent->child(), nullptr, WNOHANG) < 0;
      _exit(is_told && is_reaped && end.wait_status == wait_status ? 0 : 98);
    }
    EXPECT_EQ(status_of(pid), 0) << script;
  }
}

TEST_F(ParentOfRank, dies_by_the_signal_of_the_program) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, SIGUSR1}) {
    const int status = status_of(start("kill -" + std::to_string(number) + " $$"));
    ASSERT_TRUE(WIFSIGNALED(status)) << number;
    EXPECT_EQ(WTERMSIG(status), number);
    EXPECT_FALSE(WCOREDUMP(status)) << number;
  }
}

TEST_F(ParentOfRank, passes_a_signal_on_once) {
  const pid_t pid = start_counter();
  ASSERT_TRUE(appears(ready()));
  for (int i = 0; i < 3; ++i) {
    kill(pid, SIGUSR1);
    sleep_ms(100);
  }
  kill(pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 7);
  EXPECT_EQ(text("got"), "3");
}

TEST_F(ParentOfRank, does_not_repeat_a_signal_of_the_whole_group) {
  const pid_t pid = start_counter();
  ASSERT_TRUE(appears(ready()));
  for (int i = 0; i < 3; ++i) {
    kill(-pid, SIGUSR1);
    sleep_ms(100);
  }
  kill(-pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 7);
  EXPECT_EQ(text("got"), "3");
}

/// The program has the terminal's itself; what somebody sends to the parent later is passed on.
TEST_F(ParentOfRank, passes_on_what_comes_after_the_same_signal_of_the_terminal) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const pid_t pid = start_at_terminal(counter(), slave);
  ASSERT_TRUE(appears(ready()));
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(write(master, "\x03", 1), 1);
    sleep_ms(100);
    kill(pid, SIGINT);
    sleep_ms(100);
  }
  kill(pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 7);
  EXPECT_EQ(text("got"), "4");
  close(master);
  close(slave);
}

/// The kernel tells that a terminal is gone to the first process of its session alone.
TEST_F(ParentOfRank, passes_on_that_the_terminal_is_gone) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(fcntl(master, F_SETFD, FD_CLOEXEC), 0);  // the program holds the other end alone
  const pid_t pid = start_at_terminal(
      "trap 'exit 6' HUP; touch " + ready() +
          "; i=0; while [ $i -lt 500 ]; do sleep 0.02; i=$((i + 1)); done; exit 5",
      slave);
  close(slave);
  ASSERT_TRUE(appears(ready()));
  close(master);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 6);
}

/// As in perl -e 'alarm 60; exec @ARGV' aon-run PROGRAM.
TEST_F(ParentOfRank, leaves_its_timers_to_the_program) {
  const int status = status_of(start("exec sleep 20", [] {
    const itimerval soon{{0, 0}, {0, 200'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
  }));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGALRM);
}

TEST_F(ParentOfRank, is_passed_over_by_what_the_program_tells_its_parent) {
  const Kept kept({SIGUSR1});
  siginfo_t info{};
  (void)status_of(start("kill -USR1 0; sleep 0.2"));  // it is in another group than we
  EXPECT_EQ(kept.take(&info), -1);
  const pid_t pid = start("kill -USR1 $PPID; sleep 0.2; exit 5");
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 5);
  ASSERT_EQ(kept.take(&info), SIGUSR1);
  EXPECT_EQ(info.si_pid, pid);
}

/// The second comes while the first is judged, or after it.
TEST_F(ParentOfRank, is_passed_over_by_nothing_that_the_program_tells_its_group) {
  const Kept kept({SIGUSR1, SIGUSR2});
  for (const char* second : {"USR1", "USR2"}) {
    for (const char* pause : {"", "sleep 0.01; "}) {
      const std::string script = std::string("trap '' USR1 USR2; kill -USR1 0; ") + pause +
                                 "kill -" + second + " 0; sleep 0.2; exit 5";
      EXPECT_EQ(WEXITSTATUS(status_of(start(script))), 5);
    }
  }
  EXPECT_EQ(kept.take(), -1);
}

/// As who answers a signal that all ranks got.
TEST_F(ParentOfRank, is_passed_over_by_an_answer_to_a_signal_of_the_group) {
  const Kept kept({SIGUSR2});
  const std::string script = "trap '' USR1; kill -USR1 0; kill -USR2 $PPID; sleep 0.2; exit 5";
  EXPECT_EQ(WEXITSTATUS(status_of(start(script))), 5);
  EXPECT_EQ(kept.take(), SIGUSR2);
}

TEST_F(ParentOfRank, passes_over_what_the_program_tells_with_its_last_word) {
  const int number = SIGRTMIN + 3;  // told after SIGCHLD
  const Kept kept({number});
  const std::string script = "kill -" + std::to_string(number) + " $PPID; exit 5";
  EXPECT_EQ(WEXITSTATUS(status_of(start(script))), 5);
  EXPECT_EQ(kept.take(), number);
}

TEST_F(ParentOfRank, follows_a_program_into_a_group_of_its_own) {
  const pid_t pid = start_counter("os.setpgid(0, 0)");
  ASSERT_TRUE(appears(ready()));
  kill(-pid, SIGUSR1);
  sleep_ms(100);
  kill(pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 7);
  EXPECT_EQ(text("got"), "1");
}

TEST_F(ParentOfRank, takes_the_program_with_it) {
  const pid_t pid = start(waiting("echo $$ >" + path("pid") + ";"));
  ASSERT_TRUE(appears(ready()));
  const pid_t program = std::stoi(text("pid"));
  kill(pid, SIGKILL);
  EXPECT_EQ(WTERMSIG(status_of(pid)), SIGKILL);
  for (int i = 0; i < 200 && kill(program, 0) == 0; ++i) sleep_ms(10);
  std::ifstream state("/proc/" + std::to_string(program) + "/stat");
  std::string ignored;
  std::string letter = "gone";
  state >> ignored >> ignored >> letter;
  EXPECT_TRUE(letter == "gone" || letter == "Z") << letter;
}

/// What the program wrote into `file`.
int number_in(const std::string& file) {
  int number = 0;
  std::ifstream(file) >> number;
  return number;
}

/// 0 where there is no such process.
pid_t parent_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? 0 : atoi(text.c_str() + name_end + 4);
}

/// A child of `pid` that is none of the two; waits up to 5 s for one.
pid_t other_child(pid_t pid, pid_t one, pid_t two = -1) {
  for (int i = 0; i < 500; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t child = atoi(entry.path().filename().c_str());
      if (child > 0 && child != one && child != two && parent_of(std::to_string(child)) == pid)
        return child;
    }
    sleep_ms(10);
  }
  return -1;
}

TEST_F(ParentOfRank, has_another_witness_where_somebody_killed_the_first) {
  const pid_t pid =
      start_counter("with open(sys.argv[1] + '/pid', 'w') as f: f.write(str(os.getpid()))");
  ASSERT_TRUE(appears(ready()));
  const pid_t witness = other_child(pid, number_in(path("pid")));
  ASSERT_GT(witness, 0);
  ASSERT_EQ(kill(witness, SIGKILL), 0);
  ASSERT_GT(other_child(pid, number_in(path("pid")), witness), 0);
  kill(-pid, SIGUSR1);
  sleep_ms(100);
  kill(-pid, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 7);
  EXPECT_EQ(text("got"), "1");
}

TEST_F(ParentOfRank, goes_on_with_a_program_that_somebody_else_continued) {
  const pid_t pid = start("echo $$ > " + path("pid") + "; kill -STOP $$; exit 5");
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(number_in(path("pid")), SIGCONT);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 5);
}

TEST_F(ParentOfRank, ends_with_a_program_that_was_killed_while_stopped) {
  const pid_t pid = start("echo $$ > " + path("pid") + "; kill -STOP $$; exit 5");
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  sleep_ms(200);
  kill(number_in(path("pid")), SIGKILL);
  const int end = status_of(pid);
  ASSERT_TRUE(WIFSIGNALED(end));
  EXPECT_EQ(WTERMSIG(end), SIGKILL);
}

TEST_F(ParentOfRank, stops_and_continues_with_the_program) {
  const pid_t pid = start("kill -STOP $$; exit 5");
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  kill(pid, SIGCONT);
  EXPECT_EQ(WEXITSTATUS(status_of(pid)), 5);
}

TEST_F(ParentOfRank, holds_no_descriptor_of_the_program) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = start("exec sleep 0.3 0>&- 1>&- 2>&- " + std::to_string(ends[1]) +
                          ">&-");  // only the parent could hold the pipe now
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0)
      << "end of file came only with the end of the parent";
  close(ends[0]);
  (void)status_of(pid);
}

}  // namespace
}  // namespace aon::launcher
