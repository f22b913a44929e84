/* interrupted: spends a second of CPU time in each of the system calls that a signal may end with
 * EINTR even where its handler has SA_RESTART, and says how many did. */
#include <aon/annotate.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int pipe_ends[2];
static int epoll;

static int call_poll(void) {
  struct pollfd entry = {pipe_ends[0], POLLIN, 0};
  return poll(&entry, 1, 0);
}
static int call_epoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll, &event, 1, 0);
}
static int call_select(void) {
  struct timeval none = {0, 0};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipe_ends[0], &set);
  return select(pipe_ends[0] + 1, &set, NULL, NULL, &none);
}
static int call_sleep(void) {
  const struct timespec short_time = {0, 1};
  return nanosleep(&short_time, NULL);
}

int main(void) {
  int (*const calls[])(void) = {call_poll, call_epoll, call_select, call_sleep};
  struct epoll_event event = {.events = EPOLLIN};
  struct sigaction urgent;
  long interrupted = 0;
  if (pipe(pipe_ends) != 0 || (epoll = epoll_create1(0)) < 0) return 3;
  epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event);
  aon_region_begin(aon_region("calls"));
  for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
    const uint64_t end = cpu_ns() + 500000000u;
    while (cpu_ns() < end) interrupted += calls[i]() < 0 && errno == EINTR;
  }
  aon_region_end(aon_region("calls"));
  sigaction(SIGURG, NULL, &urgent);
  printf("interrupted %ld, handled %d\n", interrupted, urgent.sa_handler != SIG_DFL);
  return 0;
}
