/* A program whose time is known by function: of each thread's CPU time, 70 % is spent in hot() and
 * 30 % in cold(), both called by work(). Built with frame pointers.
 *
 *   hot MILLISECONDS [THREADS [forever]]    CPU time of each thread; `forever`: until it is killed
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spin(volatile double* sum, int turns) {
  for (int i = 0; i < turns; ++i) *sum = *sum * 1.0000001 + 1;
}

/* Not inlined, and no call in tail position. */
#define BUSY(name)                                               \
  __attribute__((noinline)) static void name(uint64_t time_ns) { \
    volatile double sum = 0;                                     \
    const uint64_t end = cpu_ns() + time_ns;                     \
    while (cpu_ns() < end) {                                     \
      for (int i = 0; i < 20000; ++i) sum = sum * 1.0000001 + 1; \
    }                                                            \
  }
BUSY(hot)
BUSY(cold)

static uint64_t work_ns;
static int is_endless;

__attribute__((noinline)) static void* work(void* unused) {
  volatile double sum = 0;
  const uint64_t end = cpu_ns() + work_ns;
  while (is_endless || cpu_ns() < end) {
    hot(7000000);
    cold(3000000);
  }
  spin(&sum, 1);
  return unused;
}

int main(int argc, char** argv) {
  const int thread_count = argc > 2 ? atoi(argv[2]) : 1;
  pthread_t* threads = calloc((size_t)thread_count, sizeof(pthread_t));
  int provided;
  work_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000u : 1000000000u;
  is_endless = argc > 3 && strcmp(argv[3], "forever") == 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  printf("working\n");
  fflush(stdout);
  for (int i = 1; i < thread_count; ++i) {
    if (pthread_create(&threads[i], NULL, work, NULL) != 0) return 3;
  }
  work(NULL);
  for (int i = 1; i < thread_count; ++i) pthread_join(threads[i], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  free(threads);
  return 0;
}
