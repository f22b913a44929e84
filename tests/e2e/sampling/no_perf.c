/* no_perf PROGRAM ARGUMENTS: runs the program under a seccomp filter that refuses perf_event_open
 * with EPERM, as containers do.
 *
 *   NO_PERF_ERROR=N      another error: EACCES (13) as perf_event_paranoid 3 does, ENOSYS (38)
 *   NO_PERF_PARANOID=N   what /proc/sys/kernel/perf_event_paranoid says (in a mount namespace)
 *
 * Exit 77: this machine does not let us. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int pretend(const char* level) {
  static const char file[] = "/proc/sys/kernel/perf_event_paranoid";
  char path[] = "/tmp/no_perf-XXXXXX";
  int fd;
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
  if ((fd = mkstemp(path)) < 0) return 0;
  const int is_done = write(fd, level, strlen(level)) > 0 && write(fd, "\n", 1) == 1 &&
                      mount(path, file, NULL, MS_BIND, NULL) == 0;
  close(fd);
  unlink(path);
  return is_done;
}

int main(int argc, char** argv) {
  const char* error = getenv("NO_PERF_ERROR");
  const char* level = getenv("NO_PERF_PARANOID");
  const unsigned error_number = error != NULL ? (unsigned)atoi(error) : EPERM;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  if (argc < 2) return 2;
  if (level != NULL && !pretend(level)) return 77;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 77;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
  execvp(argv[1], argv + 1);
  perror("no_perf");
  return 1;
}
