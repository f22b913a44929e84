// Four ranks: every way to make, name and free a communicator; a Barrier or a message in each, so
// that its id is seen in a record.
#include "tests/e2e/mpi/programs/check.h"

static MPI_Comm named(MPI_Comm comm, const char* name) {
  if (comm == MPI_COMM_NULL) return comm;
  MPI_Comm_set_name(comm, name);
  MPI_Barrier(comm);
  return comm;
}

static void groups(int rank) {
  MPI_Group all;
  MPI_Group pair;
  MPI_Comm comm;
  const int members[2] = {3, 1};  // in another order than in the world
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 2, members, &pair);
  MPI_Comm_create(MPI_COMM_WORLD, pair, &comm);
  named(comm, "create");
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  for (int i = 0; i < 2 && (rank == 1 || rank == 3); ++i) {
    MPI_Comm_create_group(MPI_COMM_WORLD, pair, 5, &comm);
    named(comm, i == 0 ? "group A" : "group B");
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&pair);
  MPI_Group_free(&all);
}

static void topologies(void) {
  const int dims[2] = {2, 2};
  const int periods[2] = {1, 0};
  const int remain[2] = {0, 1};
  MPI_Comm cart;
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
  named(cart, "cart");
  MPI_Cart_sub(cart, remain, &line);
  named(line, "line");
  int in[4];
  int out = 1;
  MPI_Neighbor_allgather(&out, 1, MPI_INT, in, 1, MPI_INT, cart);
  MPI_Comm_free(&line);
  MPI_Comm_free(&cart);
}

static void between(int rank) {
  MPI_Comm half;
  MPI_Comm inter;
  MPI_Comm merged;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // the last rank first
  named(half, rank % 2 ? "odd" : "even");
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 11, &inter);
  named(inter, "inter");
  int local;
  int value = rank;
  MPI_Comm_rank(inter, &local);
  if (rank % 2 == 0) MPI_Send(&value, 1, MPI_INT, local, 21, inter);
  if (rank % 2 == 1) MPI_Recv(&value, 1, MPI_INT, local, 21, inter, MPI_STATUS_IGNORE);
  MPI_Intercomm_merge(inter, rank % 2, &merged);
  named(merged, "merged");
  MPI_Comm_free(&merged);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  named(comm, "dup");
  MPI_Comm_free(&comm);
  MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  named(comm, "idup");
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 1, 0, &comm);
  named(comm, "three");
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  named(comm, "node");
  MPI_Comm_disconnect(&comm);
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  groups(rank);
  topologies();
  between(rank);
  MPI_Finalize();
  return 0;
}
