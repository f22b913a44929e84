/* rank_probe: what one rank feels. Prints one line per rank at the end:
 *
 *     probe RANK main_ns INIT_ns rss_kib P50_ns P999_ns
 *
 * main_ns and init_ns: CLOCK_REALTIME when main() began and when MPI_Init had returned; rss_kib:
 * VmRSS before MPI_Finalize; the last two: median and 99.9th percentile of one MPI_Barrier.
 *
 *   rank_probe BARRIERS     how many barriers to time (0: none)
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const uint64_t left = *(const uint64_t*)a;
  const uint64_t right = *(const uint64_t*)b;
  return left < right ? -1 : left > right;
}

static long resident_kib(void) {
  long kib = -1;
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "VmRSS:", 6) == 0) kib = strtol(line + 6, NULL, 10);
  }
  if (status != NULL) fclose(status);
  return kib;
}

int main(int argc, char** argv) {
  const uint64_t main_ns = now_ns(CLOCK_REALTIME);
  const long barrier_count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  MPI_Init(&argc, &argv);
  const uint64_t init_ns = now_ns(CLOCK_REALTIME);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  uint64_t* durations_ns = calloc((size_t)barrier_count + 1, sizeof(uint64_t));
  for (long i = 0; i < barrier_count; ++i) {
    const uint64_t start_ns = now_ns(CLOCK_MONOTONIC);
    MPI_Barrier(MPI_COMM_WORLD);
    durations_ns[i] = now_ns(CLOCK_MONOTONIC) - start_ns;
  }
  qsort(durations_ns, (size_t)barrier_count, sizeof(uint64_t), compare);
  printf("probe %d %llu %llu %ld %llu %llu\n", rank, (unsigned long long)main_ns,
         (unsigned long long)init_ns, resident_kib(),
         (unsigned long long)durations_ns[barrier_count / 2],
         (unsigned long long)durations_ns[barrier_count - barrier_count / 1000]);
  free(durations_ns);
  MPI_Finalize();
  return 0;
}
