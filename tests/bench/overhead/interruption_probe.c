/* interruption_probe: how long ranks that only compute are kept from it. Rank 0 prints at the end:
 *
 *     interruptions SUM_ns ANY_ns SPENT_ns
 *
 * SPENT_ns is the time that was looked at; SUM_ns what the ranks lost of it, all told; ANY_ns how
 * long at least one of them was interrupted: what a program loses whose ranks wait for each other.
 * A rank reads the clock without a break; what lies between two readings for more than kLeastNs is
 * an interruption.
 *
 *   interruption_probe SECONDS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kLeastNs = 1000, kMostInterruptions = 1 << 20 };

struct interval {
  int64_t begin_ns;
  int64_t end_ns;
};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Returns how many of them there were until `end_ns`. */
static int look(struct interval* found, int64_t end_ns) {
  int count = 0;
  int64_t last_ns = now_ns();
  while (last_ns < end_ns && count < kMostInterruptions) {
    const int64_t next_ns = now_ns();
    if (next_ns - last_ns > kLeastNs) found[count++] = (struct interval){last_ns, next_ns};
    last_ns = next_ns;
  }
  return count;
}

static int compare(const void* a, const void* b) {
  const int64_t left = ((const struct interval*)a)->begin_ns;
  const int64_t right = ((const struct interval*)b)->begin_ns;
  return left < right ? -1 : left > right;
}

static void tell(struct interval* all, int count, int64_t spent_ns) {
  int64_t sum_ns = 0;
  int64_t any_ns = 0;
  int64_t covered_ns = 0;
  qsort(all, (size_t)count, sizeof *all, compare);
  for (int i = 0; i < count; ++i) {
    const int64_t begin_ns = all[i].begin_ns > covered_ns ? all[i].begin_ns : covered_ns;
    sum_ns += all[i].end_ns - all[i].begin_ns;
    if (all[i].end_ns <= begin_ns) continue;
    any_ns += all[i].end_ns - begin_ns;
    covered_ns = all[i].end_ns;
  }
  printf("interruptions %lld %lld %lld\n", (long long)sum_ns, (long long)any_ns,
         (long long)spent_ns);
}

int main(int argc, char** argv) {
  const int64_t spent_ns = (argc > 1 ? strtol(argv[1], NULL, 10) : 5) * INT64_C(1000000000);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int rank_count = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  struct interval* mine = calloc(kMostInterruptions, sizeof *mine);
  struct interval* all = calloc((size_t)rank_count * kMostInterruptions, sizeof *all);
  if (mine == NULL || all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);

  look(mine, now_ns() + INT64_C(1000000000)); /* pages, and the start of everything else */
  MPI_Barrier(MPI_COMM_WORLD);
  const int count = look(mine, now_ns() + spent_ns);
  int total = count;
  if (rank == 0) {
    for (int i = 0; i < count; ++i) all[i] = mine[i];
    for (int from = 1; from < rank_count; ++from) {
      MPI_Status status;
      int bytes = 0;
      MPI_Recv(all + total, kMostInterruptions * (int)sizeof *all, MPI_BYTE, from, 0,
               MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      total += bytes / (int)sizeof *all;
    }
    tell(all, total, spent_ns);
  } else {
    MPI_Send(mine, count * (int)sizeof *mine, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
  free(mine);
  free(all);
  MPI_Finalize();
  return 0;
}
