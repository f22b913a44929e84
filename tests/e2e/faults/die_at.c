// Preloaded into a program: SIGKILL in the place of its AON_TEST_DIE_AT-th change of a directory
// (1 is the first one). The calls are those by which files appear, get their names and go.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void step(void) {
  static int left = -1;
  if (left < 0) {
    const char* text = getenv("AON_TEST_DIE_AT");
    left = text != NULL ? atoi(text) : 0;
  }
  if (left > 0 && --left == 0) kill(getpid(), SIGKILL);
}

#define REAL(name_, ...) ((__typeof__(&name_))dlsym(RTLD_NEXT, #name_))(__VA_ARGS__)

int rename(const char* from, const char* to) {
  step();
  return REAL(rename, from, to);
}
int mkdir(const char* path, mode_t mode) {
  step();
  return REAL(mkdir, path, mode);
}
int unlink(const char* path) {
  step();
  return REAL(unlink, path);
}
int unlinkat(int folder, const char* path, int flags) {
  step();
  return REAL(unlinkat, folder, path, flags);
}
int link(const char* from, const char* to) {
  step();
  return REAL(link, from, to);
}
int fsync(int fd) {
  step();
  return REAL(fsync, fd);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (flags & O_CREAT) step();
  return REAL(open, path, flags, mode);
}
