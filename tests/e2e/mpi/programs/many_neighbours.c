/// Neighbourhood collectives of processes with 1022 and with 1023 neighbours, the same ones again
/// and again; rank 1 comes MILLISECONDS late to each.
///     many_neighbours MILLISECONDS
#include <unistd.h>

#include "tests/e2e/mpi/programs/check.h"

enum { kMost = 1023 };

static void gather(int degree, unsigned late_us) {
  static int sources[kMost];
  static int destinations[kMost];
  static int values[kMost];
  const int rank = world_rank();
  const int count = world_count();
  for (int i = 0; i < degree; ++i) {
    sources[i] = (rank + i) % count;
    destinations[i] = (rank + (count - 1) * i) % count;
  }
  MPI_Comm graph;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, sources, MPI_UNWEIGHTED, degree,
                                 destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  if (rank == 1) usleep(late_us);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, values, 1, MPI_INT, graph);
  for (int i = 0; i < degree; ++i) CHECK(values[i] == sources[i]);
  MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(argc == 2 && world_count() > 1);
  const unsigned late_us = 1000 * (unsigned)atoi(argv[1]);
  gather(kMost - 1, late_us);
  MPI_Barrier(MPI_COMM_WORLD);
  gather(kMost, late_us);
  MPI_Finalize();
  return 0;
}
