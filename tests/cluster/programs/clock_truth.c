// Tells the true time as a counter: what the kernel says, past every library, at an instant whose
// own time stamp comes from the host's clock. Both readings around it are told, so that the instant
// is known as well as they are apart.
//
//     clock_truth SECONDS
#define _GNU_SOURCE
#include <aon/annotate.h>
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double true_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double seconds = argc > 1 ? atof(argv[1]) : 2;
  aon_counter_t before = aon_counter("true_before", "ns");
  aon_counter_t after = aon_counter("true_after", "ns");
  const double start_ns = true_ns();
  int is_over = 0;
  while (!is_over) {
    const double before_ns = true_ns();
    aon_counter_set(before, before_ns);
    aon_counter_set(after, true_ns());
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(2000);
    is_over = true_ns() - start_ns > seconds * 1e9;
    MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
