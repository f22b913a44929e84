#include "launcher/say.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace aon::launcher {
namespace {

/// What a program does that says something to a pipe without a reader, its signal blocked.
template <class Check>
[[noreturn]] void run_without_reader(Check check) {
  int ends[2];
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
  close(ends[0]);
  check(blocked);
  _exit(3);
}

TEST(Say, a_blocked_signal_of_a_pipe_without_a_reader_does_not_wait_for_the_program) {
  EXPECT_EXIT(run_without_reader([](const sigset_t& blocked) {
                say("nobody reads this");
                sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
              }),
              testing::ExitedWithCode(3), "");
}

TEST(Say, a_signal_that_waited_before_still_does) {
  EXPECT_EXIT(run_without_reader([](const sigset_t& blocked) {
                raise(SIGPIPE);
                say("nobody reads this");
                sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
              }),
              testing::KilledBySignal(SIGPIPE), "");
}

}  // namespace
}  // namespace aon::launcher
