// Four ranks: every collective, blocking and not, with COUNT doubles per process; mpi_test.py knows
// the bytes. v and w forms give process i a block of i + 1 doubles.
#include "tests/e2e/mpi/programs/check.h"

enum { kCount = 3, kRanks = 4 };
static double g_out[64];
static double g_in[64];
static double g_wide[64];
static int g_counts[kRanks] = {1, 2, 3, 4};
static int g_places[kRanks] = {0, 1, 3, 6};
static int g_same[kRanks] = {2, 2, 2, 2};
static int g_same_bytes[kRanks] = {0, 16, 32, 48};
static MPI_Aint g_same_far[kRanks] = {0, 16, 32, 48};
static MPI_Datatype g_types[kRanks];
#define D MPI_DOUBLE
#define W MPI_COMM_WORLD

static void blocking(int rank) {
  MPI_Barrier(W);
  MPI_Bcast(g_out, kCount, D, 1, W);
  MPI_Gather(g_out, kCount, D, g_in, kCount, D, 2, W);
  MPI_Gatherv(g_out, g_counts[rank], D, g_in, g_counts, g_places, D, 2, W);
  MPI_Scatter(g_out, kCount, D, g_in, kCount, D, 3, W);
  MPI_Scatterv(g_out, g_counts, g_places, D, g_in, g_counts[rank], D, 3, W);
  MPI_Allgather(g_out, kCount, D, g_in, kCount, D, W);
  MPI_Allgatherv(g_out, g_counts[rank], D, g_in, g_counts, g_places, D, W);
  MPI_Alltoall(g_out, kCount, D, g_in, kCount, D, W);
  MPI_Alltoallv(g_out, g_same, g_places, D, g_in, g_same, g_same, D, W);
  MPI_Alltoallw(g_out, g_same, g_same_bytes, g_types, g_in, g_same, g_same_bytes, g_types, W);
  MPI_Allreduce(g_out, g_in, kCount, D, MPI_SUM, W);
  MPI_Reduce(g_out, g_in, kCount, D, MPI_SUM, 0, W);
  MPI_Reduce_scatter(g_out, g_in, g_counts, D, MPI_SUM, W);
  MPI_Reduce_scatter_block(g_out, g_in, kCount, D, MPI_SUM, W);
  MPI_Scan(g_out, g_in, kCount, D, MPI_SUM, W);
  MPI_Exscan(g_out, g_in, kCount, D, MPI_SUM, W);
}

static void nonblocking(int rank) {
  MPI_Request r[17];
  MPI_Ibarrier(W, &r[0]);
  MPI_Waitall(1, r, MPI_STATUSES_IGNORE);
  MPI_Ibcast(g_out, kCount, D, 1, W, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Igather(g_out, kCount, D, g_in, kCount, D, 2, W, &r[0]);
  MPI_Igatherv(g_out, g_counts[rank], D, g_wide, g_counts, g_places, D, 2, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Iscatter(g_out, kCount, D, g_in, kCount, D, 3, W, &r[0]);
  MPI_Iscatterv(g_out, g_counts, g_places, D, g_wide, g_counts[rank], D, 3, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Iallgather(g_out, kCount, D, g_in, kCount, D, W, &r[0]);
  MPI_Iallgatherv(g_out, g_counts[rank], D, g_wide, g_counts, g_places, D, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Ialltoall(g_out, kCount, D, g_in, kCount, D, W, &r[0]);
  MPI_Ialltoallv(g_out, g_same, g_places, D, g_wide, g_same, g_same, D, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Ialltoallw(g_out, g_same, g_same_bytes, g_types, g_in, g_same, g_same_bytes, g_types, W,
                 &r[0]);
  MPI_Iallreduce(g_out, g_wide, kCount, D, MPI_SUM, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Ireduce(g_out, g_in, kCount, D, MPI_SUM, 0, W, &r[0]);
  MPI_Ireduce_scatter(g_out, g_wide, g_counts, D, MPI_SUM, W, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  MPI_Ireduce_scatter_block(g_out, g_in, kCount, D, MPI_SUM, W, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Iscan(g_out, g_in, kCount, D, MPI_SUM, W, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Iexscan(g_out, g_in, kCount, D, MPI_SUM, W, &r[0]);
  MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

static void neighbors(void) {
  const int dims[1] = {kRanks};
  const int periods[1] = {1};
  MPI_Comm ring;
  MPI_Request request;
  MPI_Cart_create(W, 1, dims, periods, 0, &ring);
  MPI_Neighbor_allgather(g_out, kCount, D, g_in, kCount, D, ring);
  MPI_Neighbor_allgatherv(g_out, 2, D, g_in, g_same, g_places, D, ring);
  MPI_Neighbor_alltoall(g_out, kCount, D, g_in, kCount, D, ring);
  MPI_Neighbor_alltoallv(g_out, g_same, g_places, D, g_in, g_same, g_same, D, ring);
  MPI_Neighbor_alltoallw(g_out, g_same, g_same_far, g_types, g_in, g_same, g_same_far, g_types,
                         ring);
  MPI_Ineighbor_alltoall(g_out, kCount, D, g_in, kCount, D, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&ring);
}

static void in_place(int rank) {
  const void* out = rank == 2 ? MPI_IN_PLACE : g_out;
  MPI_Comm comm;
  MPI_Comm_dup(W, &comm);
  MPI_Comm_set_name(comm, "in place");
  MPI_Allreduce(MPI_IN_PLACE, g_in, kCount, D, MPI_SUM, comm);
  MPI_Gather(out, kCount, D, g_in, kCount, D, 2, comm);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_in, kCount, D, comm);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_in, g_counts, g_places, D, comm);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  for (int i = 0; i < kRanks; ++i) g_types[i] = D;
  blocking(rank);
  nonblocking(rank);
  neighbors();
  in_place(rank);
  MPI_Finalize();
  return 0;
}
