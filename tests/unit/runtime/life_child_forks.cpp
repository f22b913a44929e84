// Children that share more or less with their parent, and whose events those are.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/unit/runtime/life_child.h"

namespace life {
namespace {

int in_child() {
  const bool wrote = event();
  return wrote ? 10 : 11;
}

int wait_exit(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void run_fork() {
  event();
  const pid_t pid = fork();
  if (pid == 0) _exit(in_child());
  printf("fork %d %d\n", pid, wait_exit(pid));
  event();
}

void run_clone() {
  event();
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (pid == 0) _exit(in_child());
  printf("clone %d %d\n", pid, wait_exit(pid));
  event();
}

void run_vfork() {
  event();
  const pid_t pid = vfork();
  if (pid == 0) _exit(in_child());
  printf("vfork %d %d\n", pid, wait_exit(pid));
  event();
}

/// A child that shares the parent's memory makes the first event; the parent goes on with 1000.
void run_first_in_vfork() {
  const pid_t pid = vfork();
  if (pid == 0) _exit(in_child());
  printf("vfork %d %d\n", pid, wait_exit(pid));
  for (int i = 0; i < 1000; ++i) event();
}

void run_first_in_shared_memory() {
  static char stack[1 << 16];
  const pid_t pid =
      clone([](void*) { return in_child(); }, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr);
  printf("clone %d %d\n", pid, wait_exit(pid));
  for (int i = 0; i < 1000; ++i) event();
}

/// The same in a thread of its own, of a process that has recorded.
void run_first_of_a_thread_in_vfork() {
  event();
  std::thread([] {
    t_thread = 1;
    const pid_t pid = vfork();
    if (pid == 0) _exit(in_child());
    printf("vfork %d %d\n", pid, wait_exit(pid));
    for (int i = 0; i < 1000; ++i) event();
  }).join();
}

/// A raw clone() leaves the C library's number of the thread as it was.
void run_first_in_clone() {
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (pid == 0) _exit(in_child());
  printf("clone %d %d\n", pid, wait_exit(pid));
  event();
}

}  // namespace life
