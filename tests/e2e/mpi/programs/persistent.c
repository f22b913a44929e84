// Four ranks: every persistent collective of MPI-4 (or of Open MPI 4), started twice on the ring
// "persistent" (scatter once), and its blocking form once on the ring "blocking";
// collectives_test.py knows the bytes. Both must give the same result.
#include "tests/e2e/mpi/programs/persistent.h"

#include "tests/e2e/mpi/programs/check.h"

enum { kCount = 3, kRanks = 4, kRoom = 64 };
static double g_out[kRoom];
static double g_in[kRoom];
static double g_expected[kRoom];
static int g_counts[kRanks] = {1, 2, 3, 4};
static int g_places[kRanks] = {0, 1, 3, 6};
static int g_same[kRanks] = {2, 2, 2, 2};
static int g_same_places[kRanks] = {0, 2, 4, 6};
static int g_same_bytes[kRanks] = {0, 16, 32, 48};
static MPI_Aint g_same_far[kRanks] = {0, 16, 32, 48};
static MPI_Datatype g_types[kRanks];
static MPI_Comm B;
static MPI_Comm P;
static MPI_Request r;
#define D MPI_DOUBLE
#define PERSISTENT P, MPI_INFO_NULL, &r

static void fill(int rank) {
  for (int i = 0; i < kRoom; ++i) {
    g_out[i] = 100 * rank + i;
    g_in[i] = 0;
  }
}

/// What came of the blocking form.
static void keep(int rank) {
  memcpy(g_expected, g_in, sizeof g_in);
  fill(rank);
}

static void run(int rank, int starts) {
  for (int round = 0; round < starts; ++round) {
    if (round == 0) MPI_Start(&r);
    if (round == 1) MPI_Startall(1, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CHECK(memcmp(g_expected, g_in, sizeof g_in) == 0);
  }
  MPI_Request_free(&r);
  fill(rank);
}

#define BOTH_STARTED(starts, name, ...)     \
  do {                                      \
    MPI_##name(__VA_ARGS__, B);             \
    keep(rank);                             \
    PREPARE(name)(__VA_ARGS__, PERSISTENT); \
    run(rank, starts);                      \
  } while (0)
#define BOTH(name, ...) BOTH_STARTED(2, name, __VA_ARGS__)

static void rooted(int rank) {
  MPI_Barrier(B);
  keep(rank);
  PREPARE(Barrier)(PERSISTENT);
  run(rank, 2);
  BOTH(Bcast, g_in, kCount, D, 1);
  BOTH(Gather, g_out, kCount, D, g_in, kCount, D, 2);
  BOTH(Gatherv, g_out, g_counts[rank], D, g_in, g_counts, g_places, D, 2);
  // MPICH 4.0 fails when it is started again.
  BOTH_STARTED(1, Scatter, g_out, kCount, D, g_in, kCount, D, 3);
  BOTH(Scatterv, g_out, g_counts, g_places, D, g_in, g_counts[rank], D, 3);
  BOTH(Reduce, g_out, g_in, kCount, D, MPI_SUM, 0);
}

static void among_all(int rank) {
  BOTH(Allgather, g_out, kCount, D, g_in, kCount, D);
  BOTH(Allgatherv, g_out, g_counts[rank], D, g_in, g_counts, g_places, D);
  BOTH(Alltoall, g_out, kCount, D, g_in, kCount, D);
  BOTH(Alltoallv, g_out, g_same, g_same_places, D, g_in, g_same, g_same_places, D);
  BOTH(Alltoallw, g_out, g_same, g_same_bytes, g_types, g_in, g_same, g_same_bytes, g_types);
  BOTH(Allreduce, g_out, g_in, kCount, D, MPI_SUM);
  BOTH(Reduce_scatter, g_out, g_in, g_counts, D, MPI_SUM);
  BOTH(Reduce_scatter_block, g_out, g_in, kCount, D, MPI_SUM);
  BOTH(Scan, g_out, g_in, kCount, D, MPI_SUM);
  BOTH(Exscan, g_out, g_in, kCount, D, MPI_SUM);
}

static void with_neighbors(int rank) {
  BOTH(Neighbor_allgather, g_out, kCount, D, g_in, kCount, D);
  BOTH(Neighbor_allgatherv, g_out, 2, D, g_in, g_same, g_same_places, D);
  BOTH(Neighbor_alltoall, g_out, kCount, D, g_in, kCount, D);
  BOTH(Neighbor_alltoallv, g_out, g_same, g_same_places, D, g_in, g_same, g_same_places, D);
  BOTH(Neighbor_alltoallw, g_out, g_same, g_same_far, g_types, g_in, g_same, g_same_far, g_types);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  CHECK(world_count() == kRanks);
  for (int i = 0; i < kRanks; ++i) g_types[i] = D;
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){kRanks}, (int[]){1}, 0, &B);
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){kRanks}, (int[]){1}, 0, &P);
  MPI_Comm_set_name(B, "blocking");
  MPI_Comm_set_name(P, "persistent");
  fill(rank);
  rooted(rank);
  among_all(rank);
  with_neighbors(rank);
  MPI_Comm_free(&P);
  MPI_Comm_free(&B);
  MPI_Finalize();
  return 0;
}
