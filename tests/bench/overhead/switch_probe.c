/* switch_probe: what a context switch costs. Two ranks take turns on one CPU by two pipes; rank 0
 * prints at the end, in ns:
 *
 *     switch WATCHED LATER
 *
 * of the first half second in which all are watched, and of the last second of SECONDS.
 *
 *   switch_probe SECONDS
 */
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of rank 0 until `end_s`; the other one follows until it reads 'q'. */
static double switch_ns(int out, int in, double end_s) {
  char token = 0;
  long count = 0;
  const double begin_s = now_s();
  double last_s = begin_s;
  while (last_s < end_s) {
    for (int i = 0; i < 100; ++i) {
      if (write(out, &token, 1) != 1 || read(in, &token, 1) != 1) exit(1);
    }
    count += 200;
    last_s = now_s();
  }
  return (last_s - begin_s) * 1e9 / (double)count;
}

static void follow(int in, int out) {
  char token = 0;
  while (token != 'q') {
    if (read(in, &token, 1) != 1 || write(out, &token, 1) != 1) exit(1);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double seconds = argc > 1 ? atof(argv[1]) : 6;
  char names[2][64] = {"switch-probe.there", "switch-probe.back"};
  if (rank == 0) {
    for (int i = 0; i < 2; ++i) {
      unlink(names[i]);
      if (mkfifo(names[i], 0600) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int there = open(names[0], O_RDWR);
  const int back = open(names[1], O_RDWR);
  cpu_set_t last;
  CPU_ZERO(&last);
  CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
  sched_setaffinity(0, sizeof last, &last);
  usleep(1500000); /* both are watched from half a second after MPI_Init on */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const double begin_s = now_s();
    const double watched_ns = switch_ns(there, back, begin_s + 0.5);
    switch_ns(there, back, begin_s + seconds - 1);
    printf("switch %.0f %.0f\n", watched_ns, switch_ns(there, back, begin_s + seconds));
    char token = 'q';
    if (write(there, &token, 1) != 1) return 1;
  } else {
    follow(there, back);
  }
  MPI_Finalize();
  return 0;
}
