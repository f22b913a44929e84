// Looks at threads of another process, which must go on as if nobody had looked.

#include "core/agent/thread_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "core/agent/stuck.h"
#include "core/base/file.h"

namespace aon::agent {
namespace {

using testing::HasSubstr;

/// A child that does `work`; told by a byte that it has begun.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      if (write(ends[1], "x", 1) != 1) _exit(1);
      work();
      _exit(0);
    }
    char byte;
    if (read(ends[0], &byte, 1) != 1) abort();
    close(ends[0]);
    close(ends[1]);
  }
  ~Child() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  int end() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }
  /// Waits until the kernel says so.
  void wait_for_state(char wanted) const {
    for (;;) {
      const auto text = read_text_file("/proc/" + std::to_string(pid_) + "/stat");
      if (text && (*text)[text->rfind(')') + 2] == wanted) return;
      usleep(1000);
    }
  }
  bool is_traced() const {
    const auto text = read_text_file("/proc/" + std::to_string(pid_) + "/status");
    return !text || text->find("TracerPid:\t0\n") == std::string::npos;
  }

 private:
  pid_t pid_ = 0;
};

ThreadLook look_at(pid_t pid, bool may_stop = true) {
  std::vector<ThreadLook> looks(1);
  looks[0].may_stop = may_stop;
  looks[0].pid = looks[0].tid = pid;
  look_at_threads(&looks);
  return looks[0];
}

[[gnu::noinline]] void stand_here() {
  for (;;) pause();
}
[[gnu::noinline]] void caller_of_stand() {
  stand_here();
  asm volatile("");
}

volatile sig_atomic_t g_signal_count = 0;

#if defined(__x86_64__)

TEST(ThreadLook, of_a_thread_that_waits_has_its_stack_and_lets_it_go) {
  Child child(caller_of_stand);
  child.wait_for_state('S');
  const ThreadLook look = look_at(child.pid());
  ASSERT_TRUE(look.has_registers) << look.remark;
  EXPECT_GT(look.stack.size(), 64u);
  EXPECT_THAT(look.remark, HasSubstr("waits in the kernel"));
  EXPECT_FALSE(child.is_traced());
  child.wait_for_state('S');  // not 't'
}

TEST(ThreadLook, stops_nobody_whose_call_would_end_with_it) {
  Child child([] {
    const int fd = epoll_create1(0);
    epoll_event event;
    _exit(epoll_wait(fd, &event, 1, 700) == 0 ? 0 : 9);  // 9: EINTR
  });
  child.wait_for_state('S');
  const ThreadLook look = look_at(child.pid());
  EXPECT_TRUE(look.has_registers) << look.remark;
  const int status = child.end();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(outlives_stops(SYS_futex));
  constexpr int64_t kOthers[] = {SYS_epoll_wait, SYS_recvfrom, SYS_write, -1};
  for (const int64_t call : kOthers) EXPECT_FALSE(outlives_stops(call)) << call;
}

TEST(ThreadLook, stops_nobody_who_is_merely_silent) {
  Child runs([] {
    for (;;) asm volatile("");
  });
  const ThreadLook look = look_at(runs.pid(), false);
  EXPECT_FALSE(look.has_registers);
  EXPECT_THAT(look.remark, HasSubstr("it runs, and may not be stopped"));
  Child waits(caller_of_stand);
  waits.wait_for_state('S');
  EXPECT_TRUE(look_at(waits.pid(), false).has_registers);
}

TEST(ThreadLook, of_a_thread_that_runs_costs_it_nothing) {
  Child child([] {
    for (;;) asm volatile("");
  });
  // Where others use the cores, or its pages come from disk, there may be nothing to see yet.
  std::string remark;
  int seen = 0;
  for (int i = 0; i < 2000 && seen < 20; ++i) {
    const ThreadLook look = look_at(child.pid());
    if (look.has_registers) {
      ++seen;
    } else {
      remark = look.remark;
      usleep(1000);
    }
  }
  EXPECT_EQ(seen, 20) << remark;
  EXPECT_FALSE(child.is_traced());
  child.wait_for_state('R');
}

TEST(ThreadLook, loses_no_signal) {
  struct sigaction action {};
  action.sa_handler = [](int) { g_signal_count = g_signal_count + 1; };
  sigaction(SIGRTMIN, &action, nullptr);  // inherited; signals of this kind queue
  Child child([] {
    while (g_signal_count < 200) usleep(100);
  });
  for (int i = 0; i < 200; ++i) {
    while (sigqueue(child.pid(), SIGRTMIN, {}) != 0) usleep(1000);  // EAGAIN: the queue is full
    if (i % 4 == 0) look_at(child.pid());
  }
  const int status = child.end();
  EXPECT_TRUE(WIFEXITED(status));
}

TEST(ThreadLook, of_a_traced_or_stopped_process_says_so) {
  Child traced([] {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
  });
  traced.wait_for_state('t');
  const ThreadLook look = look_at(traced.pid());
  EXPECT_THAT(look.remark, HasSubstr("it is stopped"));
  Child stopped([] { raise(SIGSTOP); });
  stopped.wait_for_state('T');
  EXPECT_THAT(look_at(stopped.pid()).remark, HasSubstr("it is stopped"));
  stopped.wait_for_state('T');
  kill(stopped.pid(), SIGCONT);
  EXPECT_TRUE(WIFEXITED(stopped.end()));
}

TEST(StuckThreads, tell_functions_of_the_file_from_the_innermost_on) {
  Child child(caller_of_stand);
  child.wait_for_state('S');
  Inbox inbox;
  StuckThreads stuck(&inbox);
  stuck.ask({3, child.pid(), child.pid(), 77, true});
  stuck.work(clock::TickSource::kMonotonicRaw, 1);
  std::vector<InboxDefinition> told;
  std::map<uint32_t, uint64_t> refused;
  inbox.take(&told, &refused);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].type, DefinitionType::kStack);
  StackDefinition definition;
  memcpy(&definition, told[0].payload.data(), sizeof definition);
  EXPECT_EQ(definition.process, 3u);
  EXPECT_EQ(definition.tid, child.pid());
  EXPECT_EQ(definition.quiet_ticks, 77u);
  const std::string frames(reinterpret_cast<const char*>(told[0].payload.data()) +
                           sizeof definition);
  // The C library's pause, then two functions of ours.
  EXPECT_THAT(frames, HasSubstr("libc"));
  EXPECT_THAT(frames, HasSubstr("/test_agent+0x"));
  stuck.work(clock::TickSource::kMonotonicRaw, 2);
  inbox.take(&told, &refused);
  EXPECT_TRUE(told.empty());
}

#endif

TEST(ThreadLook, of_what_has_ended_says_so) {
  Child child([] {});
  const pid_t pid = child.pid();
  child.end();
  const ThreadLook look = look_at(pid);
  EXPECT_FALSE(look.has_registers);
  EXPECT_THAT(look.remark, HasSubstr("it has ended"));
}

}  // namespace
}  // namespace aon::agent
