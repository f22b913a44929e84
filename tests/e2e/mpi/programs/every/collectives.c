// Every collective operation: blocking, non-blocking and, with MPI-4, persistent. Rank r has
// 10 r, 10 r + 1, ... in its buffer.
#include "tests/e2e/mpi/programs/every/every.h"

enum { kMost = 16 };
static int g_out[kMost];
static int g_in[kMost];
static MPI_Request g_request;

static void prepare(void) {
  for (int i = 0; i < kMost; ++i) {
    g_out[i] = 10 * me + i;
    g_in[i] = -1;
  }
}
static void finish(void) {
  OK(MPI_Wait(&g_request, MPI_STATUS_IGNORE));
  CHECK(g_request == MPI_REQUEST_NULL);
}
#if HAS_MPI_4
static void start_and_finish(void) {
  OK(MPI_Start(&g_request));
  OK(MPI_Wait(&g_request, MPI_STATUS_IGNORE));
}
#endif

/// `in` holds a and b, or only what is not negative.
static int holds(int a, int b) { return g_in[0] == a && g_in[1] == b; }

#define BLOCKING(name, is_right, ...) \
  prepare();                          \
  OK(MPI_##name(__VA_ARGS__));        \
  CHECK(is_right)
#define NONBLOCKING(name, is_right, ...)    \
  prepare();                                \
  OK(MPI_I##name(__VA_ARGS__, &g_request)); \
  finish();                                 \
  CHECK(is_right)
// Started once: MPICH 4.0 moves nothing when some are started again, with and without us.
#if HAS_MPI_4
#define PERSISTENT(name, is_right, ...)                          \
  prepare();                                                     \
  OK(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &g_request)); \
  start_and_finish();                                            \
  OK(MPI_Request_free(&g_request));                              \
  CHECK(is_right)
#else
#define PERSISTENT(name, is_right, ...)
#endif
#define EACH(name, small_name, is_right, ...)       \
  do {                                              \
    BLOCKING(name, is_right, __VA_ARGS__);          \
    NONBLOCKING(small_name, is_right, __VA_ARGS__); \
    PERSISTENT(name, is_right, __VA_ARGS__);        \
  } while (0)

static void one_to_all(void) {
  const Count counts[2] = {1, 2};
  const Displacement places[2] = {3, 5};
  EACH(Bcast, bcast, g_out[0] == 10 && g_out[1] == 11, g_out, 2, MPI_INT, 1, W);
  EACH(Scatter, scatter, holds(10 + 2 * me, 11 + 2 * me), g_out, 2, MPI_INT, g_in, 2, MPI_INT, 1,
       W);
  EACH(Scatterv, scatterv, me == 0 ? holds(13, -1) : holds(15, 16), g_out, counts, places, MPI_INT,
       g_in, me + 1, MPI_INT, 1, W);
}

static void all_to_one(void) {
  const Count counts[2] = {1, 2};
  const Displacement places[2] = {0, 1};
  EACH(Gather, gather, me == 0 || holds(0, 10), g_out, 1, MPI_INT, g_in, 1, MPI_INT, 1, W);
  EACH(Gatherv, gatherv, me == 0 || (holds(0, 10) && g_in[2] == 11), g_out, me + 1, MPI_INT, g_in,
       counts, places, MPI_INT, 1, W);
  EACH(Reduce, reduce, me == 0 || holds(10, 12), g_out, g_in, 2, MPI_INT, MPI_SUM, 1, W);
}

static void all_to_all(void) {
  const Count counts[2] = {1, 2};
  const Count own[2] = {me + 1, me + 1};
  const Displacement places[2] = {0, 1};
  const Displacement ends[2] = {0, 2};
  const Displacement bytes[2] = {0, 2 * sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  EACH(Allgather, allgather, holds(0, 10), g_out, 1, MPI_INT, g_in, 1, MPI_INT, W);
  EACH(Allgatherv, allgatherv, holds(0, 10) && g_in[2] == 11, g_out, me + 1, MPI_INT, g_in, counts,
       places, MPI_INT, W);
  EACH(Alltoall, alltoall, holds(me, 10 + me), g_out, 1, MPI_INT, g_in, 1, MPI_INT, W);
  EACH(Alltoallv, alltoallv, g_in[0] == me && g_in[2] == 10 + me, g_out, counts, places, MPI_INT,
       g_in, own, ends, MPI_INT, W);
  EACH(Alltoallw, alltoallw, g_in[0] == 2 * me && g_in[2] == 10 + 2 * me, g_out, counts, bytes,
       types, g_in, own, bytes, types, W);
  EACH(Allreduce, allreduce, holds(10, 12), g_out, g_in, 2, MPI_INT, MPI_SUM, W);
  EACH(Reduce_scatter, reduce_scatter, g_in[0] == (me == 0 ? 10 : 12), g_out, g_in, counts, MPI_INT,
       MPI_SUM, W);
  EACH(Reduce_scatter_block, reduce_scatter_block, g_in[0] == (me == 0 ? 10 : 12), g_out, g_in, 1,
       MPI_INT, MPI_SUM, W);
  EACH(Scan, scan, holds(10 * me, 2 * me + 10 * me + (me == 0)), g_out, g_in, 2, MPI_INT, MPI_SUM,
       W);
  EACH(Exscan, exscan, me == 0 || holds(0, 1), g_out, g_in, 2, MPI_INT, MPI_SUM, W);
}

static void in_place(void) {
  prepare();
  OK(MPI_Allreduce(MPI_IN_PLACE, g_out, 2, MPI_INT, MPI_MAX, W));
  CHECK(g_out[0] == 10 && g_out[1] == 11);
  prepare();
  g_in[me] = me;
  OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, g_in, 1, MPI_INT, W));
  CHECK(holds(0, 1));
  int* place = me == 1 ? MPI_IN_PLACE : g_out;
  prepare();
  g_in[1] = 10;
  OK(MPI_Gather(place, 1, MPI_INT, g_in, 1, MPI_INT, 1, W));
  CHECK(me == 0 || holds(0, 10));
}

static void barriers(void) {
  OK(MPI_Barrier(W));
  OK(MPI_Ibarrier(W, &g_request));
  finish();
#if HAS_MPI_4
  OK(MPI_Barrier_init(W, MPI_INFO_NULL, &g_request));
  start_and_finish();
  OK(MPI_Request_free(&g_request));
#endif
}

/// Each rank has itself and the other as neighbours, in that order.
void neighbours(void) {
  const int around[2] = {me, other};
  const Count counts[2] = {1, 2};
  const Count own[2] = {1, 2};
  const Displacement places[2] = {0, 1};
  const MPI_Aint bytes[2] = {0, sizeof(int)};
  const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Comm c;
  OK(MPI_Dist_graph_create_adjacent(W, 2, around, MPI_UNWEIGHTED, 2, around, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 0, &c));
  EACH(Neighbor_allgather, neighbor_allgather, holds(10 * me, 10 * other), g_out, 1, MPI_INT, g_in,
       1, MPI_INT, c);
  EACH(Neighbor_allgatherv, neighbor_allgatherv, holds(10 * me, 10 * other), g_out, 1, MPI_INT,
       g_in, (const Count[]){1, 1}, places, MPI_INT, c);
  EACH(Neighbor_alltoall, neighbor_alltoall, holds(10 * me, 10 * other + 1), g_out, 1, MPI_INT,
       g_in, 1, MPI_INT, c);
  EACH(Neighbor_alltoallv, neighbor_alltoallv,
       holds(10 * me, 10 * other + 1) && g_in[2] == 10 * other + 2, g_out, counts, places, MPI_INT,
       g_in, own, places, MPI_INT, c);
  EACH(Neighbor_alltoallw, neighbor_alltoallw,
       holds(10 * me, 10 * other + 1) && g_in[2] == 10 * other + 2, g_out, counts, bytes, types,
       g_in, own, bytes, types, c);
  OK(MPI_Comm_free(&c));
}

void collectives(void) {
  barriers();
  one_to_all();
  all_to_one();
  all_to_all();
  in_place();
}
