/* A fixed amount of work in functions that call each other to a depth of 20, in MPI ranks; prints
 * the CPU seconds of the work. Built with frame pointers.
 *
 *   bench_deep TURNS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kDepth = 20 };

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
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
  MPI_Init(&argc, &argv);
  const double start_s = cpu_s();
  for (long i = 0; i < turns; ++i) total += descend(kDepth, &sum);
  printf("%.9f %g\n", cpu_s() - start_s, total > 0 ? 1.0 : 0.0);
  MPI_Finalize();
  return 0;
}
