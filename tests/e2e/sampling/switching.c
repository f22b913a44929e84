/* Two threads that take turns on one CPU by pipes, and the main thread, which computes meanwhile.
 *
 *   switching SECONDS     prints "switches N": context switches of the process in them, and at its
 *                         end "computed S": CPU seconds of the main thread
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int to_first[2];
static int to_second[2];

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double now_s(void) { return seconds_of(CLOCK_MONOTONIC); }

static void stay_on_one_cpu(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_ZERO(&allowed);
    CPU_SET(cpu, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}

/* Until it is cancelled. */
static void* take_turns(void* is_first) {
  char token = 0;
  stay_on_one_cpu();
  const int in = is_first != NULL ? to_first[0] : to_second[0];
  const int out = is_first != NULL ? to_second[1] : to_first[1];
  while (read(in, &token, 1) == 1 && write(out, &token, 1) == 1)
    ;
  return NULL;
}

__attribute__((noinline)) static double compute(double seconds) {
  volatile double sum = 1;
  for (const double end = now_s() + seconds; now_s() < end;) {
    for (int i = 0; i < 20000; ++i) sum = sum * 1.0000001 + 1;
  }
  return sum;
}

static long switches(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (pipe(to_first) != 0 || pipe(to_second) != 0) return 1;
  pthread_t first;
  pthread_t second;
  pthread_create(&first, NULL, take_turns, to_first);
  pthread_create(&second, NULL, take_turns, NULL);
  compute(1.5); /* all is watched by now */
  const long before = switches();
  const char token = 0;
  if (write(to_first[1], &token, 1) != 1) return 1;
  compute(atof(argv[1]));
  printf("switches %ld\n", switches() - before);
  fflush(stdout);
  pthread_cancel(first);
  pthread_cancel(second);
  pthread_join(first, NULL);
  pthread_join(second, NULL);
  compute(1.5); /* /proc is read once a second */
  printf("computed %.3f\n", seconds_of(CLOCK_THREAD_CPUTIME_ID));
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
