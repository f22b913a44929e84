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
static int g_same_places[kRanks] = {0, 2, 4, 6};
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
  MPI_Ineighbor_allgather(g_out, kCount, D, g_in, kCount, D, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ineighbor_allgatherv(g_out, 2, D, g_in, g_same, g_places, D, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ineighbor_alltoall(g_out, kCount, D, g_in, kCount, D, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ineighbor_alltoallv(g_out, g_same, g_places, D, g_in, g_same, g_same, D, ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Ineighbor_alltoallw(g_out, g_same, g_same_far, g_types, g_in, g_same, g_same_far, g_types,
                          ring, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&ring);
}

/// Neighbours that are not the same for all: an open line, a graph, one that only goes one way.
static void one_way(MPI_Comm comm, const char* name) {
  MPI_Comm_set_name(comm, name);
  MPI_Neighbor_allgather(g_out, kCount, D, g_wide, kCount, D, comm);
  MPI_Neighbor_allgatherv(g_out, 2, D, g_wide, g_same, g_places, D, comm);
  MPI_Neighbor_alltoallv(g_out, g_same, g_places, D, g_wide, g_same, g_same_places, D, comm);
  MPI_Comm_free(&comm);
}

static void other_neighbors(int rank) {
  const int dims[1] = {kRanks};
  const int periods[1] = {0};
  const int grid_dims[2] = {2, 2};
  const int grid_periods[2] = {1, 0};
  // 0 - 1, 0 - 2, 0 - 3
  const int ends[kRanks] = {3, 4, 5, 6};
  const int edges[6] = {1, 2, 3, 0, 0, 0};
  // Each to all that are above it.
  const int lower[kRanks] = {0, 1, 2, 3};
  const int upper[kRanks] = {rank + 1, rank + 2, rank + 3};
  MPI_Comm comm;
  MPI_Cart_create(W, 1, dims, periods, 0, &comm);
  MPI_Comm_set_name(comm, "line");
  // The first neighbour gets one, the second two, where there is one.
  const int from[2] = {2, 1};
  MPI_Neighbor_alltoallv(g_out, g_counts, g_places, D, g_wide, from, g_same_places, D, comm);
  MPI_Neighbor_allgather(g_out, kCount, D, g_wide, kCount, D, comm);
  MPI_Neighbor_allgatherv(g_out, 2, D, g_wide, g_same, g_places, D, comm);
  MPI_Neighbor_alltoallw(g_out, g_same, g_same_far, g_types, g_wide, g_same, g_same_far, g_types,
                         comm);
  MPI_Comm_free(&comm);
  MPI_Cart_create(W, 2, grid_dims, grid_periods, 0, &comm);
  MPI_Comm_set_name(comm, "grid");
  MPI_Neighbor_alltoall(g_out, kCount, D, g_wide, kCount, D, comm);
  MPI_Comm_free(&comm);
  MPI_Graph_create(W, kRanks, ends, edges, 0, &comm);
  MPI_Comm_set_name(comm, "graph");
  MPI_Neighbor_allgather(g_out, kCount, D, g_wide, kCount, D, comm);
  MPI_Neighbor_allgatherv(g_out, 2, D, g_wide, g_same, g_places, D, comm);
  MPI_Neighbor_alltoallw(g_out, g_same, g_same_far, g_types, g_wide, g_same, g_same_far, g_types,
                         comm);
  MPI_Comm_free(&comm);
  MPI_Dist_graph_create_adjacent(W, rank, lower, MPI_UNWEIGHTED, kRanks - 1 - rank, upper,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  one_way(comm, "one way");
  // The first has no sources, and the last no destinations, to give a weight.
  const int weights[kRanks] = {5, 6, 7, 8};
  const int* sources_weights = rank == 0 ? MPI_WEIGHTS_EMPTY : weights;
  const int* upper_weights = rank == kRanks - 1 ? MPI_WEIGHTS_EMPTY : weights;
  const int upper_count = kRanks - 1 - rank;
  MPI_Dist_graph_create_adjacent(W, rank, lower, sources_weights, upper_count, upper, upper_weights,
                                 MPI_INFO_NULL, 0, &comm);
  one_way(comm, "one way, weighted");
  MPI_Dist_graph_create(W, 1, &rank, &upper_count, upper, upper_weights, MPI_INFO_NULL, 0, &comm);
  one_way(comm, "one way, told by its starts");
}

/// One process to three, and back. A call is rooted in the one, or in the second of the three.
static void between(int rank) {
  const int is_one = rank == 0;
  const int one = is_one ? MPI_ROOT : 0;
  const int second = is_one ? 1 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL;
  const int lone_count[1] = {6};
  const int* own_counts = is_one ? lone_count : g_counts;
  const int mine = is_one ? 6 : rank;
  MPI_Comm side;
  MPI_Comm c;
  MPI_Comm_split(W, is_one, 0, &side);
  MPI_Intercomm_create(side, 0, W, is_one ? 1 : 0, 5, &c);
  MPI_Comm_set_name(c, "between");
  MPI_Barrier(c);
  MPI_Bcast(g_out, kCount, D, one, c);
  MPI_Gather(g_out, kCount, D, g_in, kCount, D, second, c);
  MPI_Gatherv(g_out, mine, D, g_wide, is_one ? g_counts : lone_count, g_places, D, one, c);
  MPI_Scatter(g_out, kCount, D, g_in, kCount, D, one, c);
  MPI_Scatterv(g_out, g_counts, g_places, D, g_wide, mine, D, one, c);
  MPI_Allgather(g_out, kCount, D, g_in, kCount, D, c);
  MPI_Allgatherv(g_out, mine, D, g_wide, is_one ? g_counts : lone_count, g_places, D, c);
  MPI_Alltoall(g_out, kCount, D, g_in, kCount, D, c);
  MPI_Alltoallv(g_out, g_same, g_places, D, g_in, g_same, g_places, D, c);
  MPI_Alltoallw(g_out, g_same, g_same_bytes, g_types, g_in, g_same, g_same_bytes, g_types, c);
  MPI_Allreduce(g_out, g_in, kCount, D, MPI_SUM, c);
  MPI_Reduce(g_out, g_in, kCount, D, MPI_SUM, second, c);
  MPI_Reduce_scatter(g_out, g_in, own_counts, D, MPI_SUM, c);
  MPI_Reduce_scatter_block(g_out, g_in, is_one ? 3 : 1, D, MPI_SUM, c);
  MPI_Comm_free(&c);
  MPI_Comm_free(&side);
}

static void in_place(int rank) {
  const void* out = rank == 2 ? MPI_IN_PLACE : g_out;
  void* in = rank == 2 ? MPI_IN_PLACE : g_wide;
  MPI_Comm comm;
  MPI_Comm_dup(W, &comm);
  MPI_Comm_set_name(comm, "in place");
  MPI_Allreduce(MPI_IN_PLACE, g_in, kCount, D, MPI_SUM, comm);
  MPI_Gather(out, kCount, D, g_in, kCount, D, 2, comm);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_in, kCount, D, comm);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_in, g_counts, g_places, D, comm);
  MPI_Gatherv(out, g_counts[rank], D, g_in, g_counts, g_places, D, 2, comm);
  MPI_Scatter(g_in, kCount, D, in, kCount, D, 2, comm);
  MPI_Scatterv(g_in, g_counts, g_places, D, in, g_counts[rank], D, 2, comm);
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, g_in, g_same, g_same_places, D, comm);
  MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, g_in, g_same, g_same_bytes, g_types, comm);
  MPI_Reduce(out, g_in, kCount, D, MPI_SUM, 2, comm);
  MPI_Reduce_scatter(MPI_IN_PLACE, g_in, g_counts, D, MPI_SUM, comm);
  MPI_Reduce_scatter_block(MPI_IN_PLACE, g_in, kCount, D, MPI_SUM, comm);
  MPI_Scan(MPI_IN_PLACE, g_in, kCount, D, MPI_SUM, comm);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  for (int i = 0; i < kRanks; ++i) g_types[i] = D;
  blocking(rank);
  nonblocking(rank);
  neighbors();
  other_neighbors(rank);
  between(rank);
  in_place(rank);
  MPI_Finalize();
  return 0;
}
