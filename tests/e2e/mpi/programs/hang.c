/* Two barriers; the last rank comes to the second one MILLISECONDS later than the others, or, with
 * a negative number, never. "ring": each rank says so and sends to the next one before it receives.
 * "init": the last of three ranks of Open MPI never calls MPI_Init. "request": the last rank never
 * starts the barrier that the others wait for. "halo": nor what it would send them a second time.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With both neighbours in a ring of at least three. */
static void exchange_halos(int rank, int ranks) {
  MPI_Request requests[4];
  int values[4] = {rank, rank, -1, -1};
  for (int side = 0; side < 2; ++side) {
    const int peer = (rank + (side == 0 ? 1 : ranks - 1)) % ranks;
    MPI_Irecv(&values[2 + side], 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[side]);
    MPI_Isend(&values[side], 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[2 + side]);
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  int rank, ranks;
  const int late_ms = argc > 1 ? atoi(argv[1]) : 0;
  const char* what = argc > 1 ? argv[1] : "";
  const char* rank_told = getenv("OMPI_COMM_WORLD_RANK");
  if (strcmp(what, "init") == 0 && rank_told != NULL && atoi(rank_told) == 2) pause();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "ring") == 0) {
    printf("sends\n");
    fflush(stdout);
    MPI_Ssend(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
  }
  if (strcmp(what, "request") == 0 && rank != ranks - 1) {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (strcmp(what, "halo") == 0) {
    exchange_halos(rank, ranks);
    if (rank == ranks - 1) pause();
    exchange_halos(rank, ranks);
  }
  if (rank == ranks - 1) {
    if (late_ms < 0 || strcmp(what, "request") == 0) pause();
    usleep((useconds_t)late_ms * 1000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
