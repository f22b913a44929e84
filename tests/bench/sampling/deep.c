/* A fixed amount of work in functions that call each other to a depth of 20, in MPI ranks; prints
 * the CPU seconds of the work. Built with frame pointers.
 *
 *   bench_deep TURNS [HZ]    HZ: of a bare timer, an event of the kernel that tells nobody anything
 */
#include <linux/perf_event.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kDepth = 20 };

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What a sample costs before anything is written: the interrupt. */
static void start_timer(uint64_t hz) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = 1000000000 / hz;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0) {
    perror("perf_event_open");
    exit(1);
  }
}

__attribute__((noinline)) static double descend(int depth, volatile double* sum) {
  if (depth > 0) return descend(depth - 1, sum) + 1;
  for (int i = 0; i < 10000; ++i) *sum = *sum * 1.0000001 + 1;
  return *sum;
}

int main(int argc, char** argv) {
  const long turns = argc > 1 ? atol(argv[1]) : 1000;
  volatile double sum = 0;
  double total = 0;
  const long timer_hz = argc > 2 ? atol(argv[2]) : 0;
  if (timer_hz > 0) start_timer((uint64_t)timer_hz);
  MPI_Init(&argc, &argv);
  const double start_s = cpu_s();
  for (long i = 0; i < turns; ++i) total += descend(kDepth, &sum);
  printf("%.9f %g\n", cpu_s() - start_s, total > 0 ? 1.0 : 0.0);
  MPI_Finalize();
  return 0;
}
