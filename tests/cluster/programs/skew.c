// Preloaded into everything of a simulated host (ld.so.preload): CLOCK_MONOTONIC_RAW and
// CLOCK_REALTIME run at a rate of their own and stand wrong, stamps of packets with them.
// /etc/aon-skew: "offset_ns rate_ppb origin_ns".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_ns;
static long long rate_ppb;
static long long origin_ns;  ///< the rates differ from here on, so that offsets stay small
static int is_known;

static void learn(void) {
  char text[128] = {0};
  const int fd = open("/etc/aon-skew", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (read(fd, text, sizeof(text) - 1) > 0)
      (void)sscanf(text, "%lld %lld %lld", &offset_ns, &rate_ppb, &origin_ns);
    close(fd);
  }
  __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
}

static int true_time(clockid_t clock, struct timespec* time) {
  static int (*next)(clockid_t, struct timespec*);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "clock_gettime");
  return next != NULL ? next(clock, time) : (int)syscall(SYS_clock_gettime, clock, time);
}

static long long ns_of(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

/// `time` as this host's clock shows it `age_ns` after that.
static void skew(struct timespec* time, long long age_ns) {
  if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) learn();
  struct timespec raw;
  true_time(CLOCK_MONOTONIC_RAW, &raw);
  const long long elapsed_ns = ns_of(raw) - age_ns - origin_ns;
  const long long ns =
      time->tv_nsec + offset_ns + (long long)((__int128)elapsed_ns * rate_ppb / 1000000000);
  const long long seconds = ns >= 0 ? ns / 1000000000 : -((999999999 - ns) / 1000000000);
  time->tv_sec += seconds;
  time->tv_nsec = ns - seconds * 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = true_time(clock, time);
  if (clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME) skew(time, 0);
  return result;
}

/// The kernel's stamps of what came are times of REALTIME, too.
ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  static ssize_t (*next)(int, struct msghdr*, int);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "recvmsg");
  const ssize_t got = next(fd, message, flags);
  if (got < 0) return got;
  for (struct cmsghdr* c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPING) continue;
    struct timespec stamp;
    struct timespec now;
    memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
    true_time(CLOCK_REALTIME, &now);
    skew(&stamp, ns_of(now) - ns_of(stamp));
    memcpy(CMSG_DATA(c), &stamp, sizeof(stamp));
  }
  return got;
}
