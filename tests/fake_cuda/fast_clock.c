// Preloaded: CLOCK_MONOTONIC of gpu_program, and of nothing that starts it, runs ten times as fast,
// so that waiting times of half a minute pass in a test. Its other clocks do not.
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kTimes = 10, kNsPerS = 1000000000 };

/// libc's own, by the system: this function takes its place.
int clock_gettime(clockid_t clock, struct timespec* time) {
  static long long first_ns;
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC) return result;
  if (strcmp(program_invocation_short_name, "gpu_program") != 0) return 0;
  const long long now_ns = kNsPerS * (long long)time->tv_sec + time->tv_nsec;
  long long expected = 0;
  __atomic_compare_exchange_n(&first_ns, &expected, now_ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  const long long told_ns = now_ns + (kTimes - 1) * (now_ns - first_ns);
  time->tv_sec = told_ns / kNsPerS;
  time->tv_nsec = told_ns % kNsPerS;
  return 0;
}
