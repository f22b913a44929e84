// Communicators whose making is not seen by all alike; `identities CASE`, four ranks. In the end
// each is named and used, so that its identity is in a record.
//
//   pause    rank 2 pauses the recording around every way to make one, the others record it
//   lone     one for each pair of ranks that nobody saw made; with one more argument rank 1 pauses
//   several  three of the same members that nobody saw made, which ranks meet in different orders
//   callback a copy of a communicator has copies of two others, which callbacks of its keys make
//   counted  ranks 0 and 1 meet some that nobody saw made; the ones they make afterwards are seen
#include "tests/e2e/mpi/programs/check.h"

#define W MPI_COMM_WORLD

static void named(MPI_Comm comm, const char* name) {
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_set_name(comm, name);
  MPI_Barrier(comm);
}

enum { kMost = 24 };
static MPI_Comm g_made[kMost];
static const char* g_names[kMost];
static int g_count;

/// Where the next communicator goes, which will be called `name`.
static MPI_Comm* next(const char* name) {
  CHECK(g_count < kMost);
  g_names[g_count] = name;
  g_made[g_count] = MPI_COMM_NULL;
  return &g_made[g_count++];
}
static MPI_Comm last(void) { return g_made[g_count - 1]; }

static void copy(MPI_Comm comm, const char* name) {
  MPI_Request request;
  MPI_Comm_idup(comm, next(name), &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void make_parts(int rank) {
  const int members[2] = {3, 2};
  MPI_Group all;
  MPI_Group pair;
  MPI_Comm_group(W, &all);
  MPI_Group_incl(all, 2, members, &pair);
  MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, next("node"));
  MPI_Comm_create(W, pair, next("create"));
  if (rank >= 2) MPI_Comm_create_group(W, pair, 5, next("group"));
  MPI_Group_free(&pair);
  MPI_Group_free(&all);
}

/// Returns the copy of a grid.
static MPI_Comm make_topologies(int rank) {
  const int dims[2] = {2, 2};
  const int periods[2] = {1, 0};
  const int remain[2] = {0, 1};
  const int index[4] = {1, 2, 3, 4};
  const int edges[4] = {1, 0, 3, 2};
  const int before = (rank + 3) % 4;
  const int behind = (rank + 1) % 4;
  const int weight = 1;
  MPI_Cart_create(W, 2, dims, periods, 0, next("cart"));
  const MPI_Comm grid = last();
  MPI_Cart_sub(grid, remain, next("line"));
  MPI_Graph_create(W, 4, index, edges, 0, next("graph"));
  MPI_Dist_graph_create_adjacent(W, 1, &before, &weight, 1, &behind, &weight, MPI_INFO_NULL, 0,
                                 next("ring"));
  copy(grid, "idup of cart");
  return last();
}

static void make_inter(int rank) {
  MPI_Comm_split(W, rank % 2, -rank, next("split"));
  const MPI_Comm half = last();
  MPI_Intercomm_create(half, 0, W, rank % 2 ? 2 : 3, 11, next("inter"));
  const MPI_Comm inter = last();
  copy(inter, "idup of inter");
  MPI_Intercomm_merge(inter, rank % 2, next("merged"));
}

static void open_and_close(MPI_Comm comm) {
  MPI_File file;
  CHECK(MPI_File_open(comm, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS);
  MPI_File_close(&file);
}

static void pause_of_one(int rank) {
  MPI_Request before;
  MPI_Request behind;
  MPI_Win window;
  void* memory;
  int in[4];
  MPI_Comm_idup(W, next("idup before"), &before);
  const MPI_Comm first = last();
  if (rank == 2) MPI_Pcontrol(0);
  MPI_Wait(&before, MPI_STATUS_IGNORE);
  MPI_Comm_dup(W, next("dup"));
  const MPI_Comm dup = last();
  MPI_Comm_dup_with_info(W, MPI_INFO_NULL, next("dup with info"));
  copy(W, "idup");
  const MPI_Comm parent = last();
  MPI_Comm_dup(parent, next("child of idup"));
  make_parts(rank);
  const MPI_Comm grid = make_topologies(rank);
  make_inter(rank);
  copy(MPI_COMM_SELF, "self");
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, dup, &memory, &window);
  open_and_close(dup);
  MPI_Comm_idup(W, next("idup behind"), &behind);
  if (rank == 2) MPI_Pcontrol(1);
  MPI_Wait(&behind, MPI_STATUS_IGNORE);
  MPI_Comm_dup(W, next("after"));
  MPI_Comm_dup(first, next("after idup"));
  for (int i = 0; i < g_count; ++i) named(g_made[i], g_names[i]);
  open_and_close(dup);
  MPI_Win_set_name(window, "window");
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, grid);
  for (int i = 0; i < g_count; ++i) {
    if (g_made[i] != MPI_COMM_NULL) MPI_Comm_free(&g_made[i]);
  }
}

/// One message each way round.
static void use(MPI_Comm comm, int tag) {
  int rank;
  int count;
  int in;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &count);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % count, tag, &in, 1, MPI_INT,
               (rank + count - 1) % count, tag, comm, MPI_STATUS_IGNORE);
}

static void lone(int rank, int pauses) {
  MPI_Comm pair;
  MPI_Comm copy;
  MPI_Request request;
  PMPI_Comm_split(W, rank / 2, 0, &pair);
  use(pair, 1);
  named(pair, "pair");
  MPI_Comm_dup(pair, &copy);
  named(copy, "copy");
  use(copy, 2);
  MPI_Comm_free(&copy);
  if (pauses && rank == 1) MPI_Pcontrol(0);
  MPI_Comm_idup(pair, &copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (pauses && rank == 1) MPI_Pcontrol(1);
  named(copy, "second copy");
  MPI_Comm_free(&copy);
  MPI_Comm_free(&pair);
}

static void several(int rank) {
  const char* names[3] = {"first", "second", "third"};
  MPI_Comm made[3];
  MPI_Comm copies[3];
  for (int i = 0; i < 3; ++i) PMPI_Comm_dup(W, &made[i]);
  for (int i = 0; i < 3; ++i) {
    const int at = (i + rank) % 3;
    MPI_Comm_set_name(made[at], names[at]);
  }
  for (int i = 0; i < 3; ++i) use(made[i], i);
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(made[i], &copies[i]);
    use(copies[i], 3 + i);
    MPI_Comm_free(&copies[i]);
    MPI_Comm_free(&made[i]);
  }
  use(W, 9);
}

static void counted(int rank) {
  const int both[2] = {0, 1};
  MPI_Comm unseen;
  MPI_Comm comm;
  MPI_Group all;
  MPI_Group pair;
  if (rank > 1) return;
  PMPI_Comm_group(W, &all);
  PMPI_Group_incl(all, 2, both, &pair);
  PMPI_Comm_create_group(W, pair, 1, &unseen);
  if (rank == 1) MPI_Barrier(unseen);
  if (rank == 0) PMPI_Barrier(unseen);
  MPI_Comm_create_group(W, pair, 0, &comm);
  named(comm, "counted");
  MPI_Comm_free(&comm);
}

static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  MPI_Comm* copy = malloc(sizeof *copy);
  (void)comm, (void)key, (void)extra;
  *flag = 1;
  *(void**)out = copy;
  return MPI_Comm_dup(*(MPI_Comm*)in, copy);
}

static void callback(void) {
  MPI_Comm outer;
  MPI_Comm copy;
  MPI_Comm inner[2];
  int keys[2];
  MPI_Comm_dup(W, &outer);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(W, &inner[i]);
    MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &keys[i], NULL);
    MPI_Comm_set_attr(outer, keys[i], &inner[i]);
  }
  MPI_Comm_dup(outer, &copy);
  for (int i = 0; i < 2; ++i) {
    MPI_Comm* copied;
    int is_there;
    MPI_Comm_get_attr(copy, keys[i], &copied, &is_there);
    CHECK(is_there);
    MPI_Comm_set_name(*copied, i == 0 ? "first copied" : "second copied");
    use(*copied, i);
  }
  use(copy, 2);
}

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  CHECK(world_count() == 4);
  if (strcmp(wanted, "pause") == 0) pause_of_one(rank);
  if (strcmp(wanted, "lone") == 0) lone(rank, argc > 2);
  if (strcmp(wanted, "several") == 0) several(rank);
  if (strcmp(wanted, "callback") == 0) callback();
  if (strcmp(wanted, "counted") == 0) counted(rank);
  MPI_Finalize();
  return 0;
}
