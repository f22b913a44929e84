// Children that share more or less with their parent, and whose events those are.
#include <aon/annotation.h>
#include <aon/pause.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
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

/// As in containers.
void forbid_kcmp() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(122);
}

int count_descriptors() {
  constexpr int kMost = 4096;
  int count = 0;
  for (int fd = 0; fd < kMost; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

/// Each a child of the one before it, with an event of its own.
void live(int generation) {
  constexpr int kGenerations = 5;
  event();
  if (generation == 1) dprintf(STDOUT_FILENO, "first child %d\n", count_descriptors());
  if (generation == kGenerations) dprintf(STDOUT_FILENO, "last child %d\n", count_descriptors());
  if (generation == kGenerations) return;
  const pid_t pid = fork();
  if (pid == 0) {
    live(generation + 1);
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
}

}  // namespace

void run_generations() { live(0); }

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

void run_clone_without_kcmp() {
  forbid_kcmp();
  run_clone();
}

void run_first_in_clone_without_kcmp() {
  forbid_kcmp();
  run_first_in_clone();
}

/// The child is made within two regions of its parent's, which it leaves.
void run_fork_in_regions() {
  const aon::Annotation* region =
      aon::aon_find_annotation("region", 6, aon::RegionRole::kUser, aon::Paradigm::kUser);
  g_emitted.fetch_add(4);
  for (int i = 0; i < 2; ++i) aon::begin_region(region);
  const pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 2; ++i) aon::end_region(region);
    _exit(in_child());
  }
  printf("fork %d %d\n", pid, wait_exit(pid));
  for (int i = 0; i < 2; ++i) aon::end_region(region);
}

/// What devices do in the child is no matter of the parent's pause.
void run_fork_in_pause() {
  event();
  aon::aon_set_paused(true);
  const pid_t pid = fork();
  if (pid == 0) {
    const int code = in_child();
    _exit(aon::aon_was_paused(aon::ticks(aon::writer())) ? 12 : code);
  }
  printf("fork %d %d\n", pid, wait_exit(pid));
  aon::aon_set_paused(false);
}

/// Nothing can be recorded, in the child neither.
void run_fork_without_ring() {
  run_without_keys();
  const pid_t pid = fork();
  if (pid == 0) _exit(in_child());
  printf("fork %d %d\n", pid, wait_exit(pid));
}

/// A child that shares the parent's memory makes the first event; the parent goes on with 1000.
void run_first_in_vfork() {
  const pid_t pid = vfork();
  if (pid == 0) _exit(in_child());
  printf("vfork %d %d\n", pid, wait_exit(pid));
  for (int i = 0; i < 1000; ++i) event();
}

void run_first_in_shared_memory(int more_flags) {
  static char stack[1 << 16];
  const pid_t pid = clone([](void*) { return in_child(); }, stack + sizeof stack,
                          CLONE_VM | SIGCHLD | more_flags, nullptr);
  if (pid > 0) printf("clone %d %d\n", pid, wait_exit(pid));
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
