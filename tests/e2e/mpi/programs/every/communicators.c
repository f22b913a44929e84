// Every way to make, name, ask about and free a communicator, and a collective in each.
#include "tests/e2e/mpi/programs/every/every.h"

static void use(MPI_Comm comm, int size) {
  int sum = 0, one = 1;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK(sum == size);
}
static void use_and_free(MPI_Comm* comm, int size) {
  use(*comm, size);
  OK(MPI_Comm_free(comm));
  CHECK(*comm == MPI_COMM_NULL);
}

static void copies(void) {
  MPI_Comm comm;
  MPI_Info info;
  MPI_Request request;
  int length = 0, result = -1;
  char name[MPI_MAX_OBJECT_NAME];
  OK(MPI_Comm_dup(W, &comm));
  OK(MPI_Comm_compare(W, comm, &result));
  CHECK(result == MPI_CONGRUENT);
  OK(MPI_Comm_set_name(comm, "a copy"));
  OK(MPI_Comm_get_name(comm, name, &length));
  CHECK(strcmp(name, "a copy") == 0 && length == 6);
  OK(MPI_Info_create(&info));
  OK(MPI_Comm_set_info(comm, info));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_get_info(comm, &info));
  CHECK(info != MPI_INFO_NULL);
  OK(MPI_Info_free(&info));
  use_and_free(&comm, 2);
  OK(MPI_Comm_dup_with_info(W, MPI_INFO_NULL, &comm));
  use_and_free(&comm, 2);
  OK(MPI_Comm_idup(W, &comm, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  use_and_free(&comm, 2);
#if HAS_MPI_4
  OK(MPI_Comm_idup_with_info(W, MPI_INFO_NULL, &comm, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  use_and_free(&comm, 2);
#endif
}

static void parts(void) {
  MPI_Comm comm;
  MPI_Group all;
  int rank = -1;
  OK(MPI_Comm_split(W, 0, -me, &comm));
  OK(MPI_Comm_rank(comm, &rank));
  CHECK(rank == other);
  use_and_free(&comm, 2);
  OK(MPI_Comm_split(W, me == 0 ? MPI_UNDEFINED : 1, 0, &comm));
  CHECK((comm == MPI_COMM_NULL) == (me == 0));
  if (me == 1) use_and_free(&comm, 1);
  OK(MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
  use_and_free(&comm, 2);
  OK(MPI_Comm_group(W, &all));
  OK(MPI_Comm_create(W, all, &comm));
  use_and_free(&comm, 2);
  OK(MPI_Comm_create_group(W, all, 5, &comm));
  use_and_free(&comm, 2);
  OK(MPI_Group_free(&all));
}

static void between_groups(void) {
  MPI_Comm half, between, merged;
  MPI_Group remote;
  int flag = 0, size = 0, value = me, sum = -1;
  OK(MPI_Comm_split(W, me, 0, &half));
  OK(MPI_Intercomm_create(half, 0, W, other, 7, &between));
  OK(MPI_Comm_test_inter(between, &flag));
  OK(MPI_Comm_remote_size(between, &size));
  CHECK(flag && size == 1);
  OK(MPI_Comm_remote_group(between, &remote));
  OK(MPI_Group_size(remote, &size));
  CHECK(size == 1);
  OK(MPI_Group_free(&remote));
  OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, between));
  CHECK(sum == other);
  OK(MPI_Intercomm_merge(between, me, &merged));
  use_and_free(&merged, 2);
  OK(MPI_Comm_free(&between));
  OK(MPI_Comm_disconnect(&half));
  CHECK(half == MPI_COMM_NULL);
}

void communicators(void) {
  MPI_Comm parent;
  copies();
  parts();
  between_groups();
  OK(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
}

static void cartesian(void) {
  int dims[2] = {0, 1}, periods[2] = {1, 0}, coords[2] = {-1, -1};
  int rank = -1, source = -1, to = -1, kind = -1;
  const int remain[2] = {0, 1};
  MPI_Comm grid, line;
  OK(MPI_Dims_create(2, 2, dims));
  CHECK(dims[0] == 2 && dims[1] == 1);
  OK(MPI_Cart_map(W, 2, dims, periods, &rank));
  CHECK(rank >= 0 && rank < 2);
  OK(MPI_Cart_create(W, 2, dims, periods, 0, &grid));
  OK(MPI_Topo_test(grid, &kind));
  CHECK(kind == MPI_CART);
  OK(MPI_Cartdim_get(grid, &kind));
  CHECK(kind == 2);
  OK(MPI_Cart_get(grid, 2, dims, periods, coords));
  CHECK(coords[0] == me && coords[1] == 0 && periods[0] && !periods[1]);
  OK(MPI_Cart_coords(grid, other, 2, coords));
  CHECK(coords[0] == other);
  OK(MPI_Cart_rank(grid, coords, &rank));
  CHECK(rank == other);
  OK(MPI_Cart_shift(grid, 0, 1, &source, &to));
  CHECK(source == other && to == other);
  OK(MPI_Cart_shift(grid, 1, 1, &source, &to));
  CHECK(source == MPI_PROC_NULL && to == MPI_PROC_NULL);
  OK(MPI_Cart_sub(grid, remain, &line));
  use_and_free(&line, 1);
  use_and_free(&grid, 2);
}

static void graphs(void) {
  int index[2] = {1, 2}, edges[2] = {1, 0}, rank = -1, count = -1, neighbour = -1;
  MPI_Comm graph;
  OK(MPI_Graph_map(W, 2, index, edges, &rank));
  CHECK(rank >= 0 && rank < 2);
  OK(MPI_Graph_create(W, 2, index, edges, 0, &graph));
  OK(MPI_Graphdims_get(graph, &count, &rank));
  CHECK(count == 2 && rank == 2);
  OK(MPI_Graph_get(graph, 2, 2, index, edges));
  CHECK(index[0] == 1 && edges[0] == 1);
  OK(MPI_Graph_neighbors_count(graph, other, &count));
  OK(MPI_Graph_neighbors(graph, other, 1, &neighbour));
  CHECK(count == 1 && neighbour == me);
  use_and_free(&graph, 2);
}

static void distributed_graph(void) {
  int in = -1, out = -1, weighted = -1, from = -1, to = -1, in_weight = -1, out_weight = -1;
  const int one = 1;
  MPI_Comm graph;
  OK(MPI_Dist_graph_create(W, 1, &me, &one, &other, &one, MPI_INFO_NULL, 0, &graph));
  OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
  CHECK(in == 1 && out == 1 && weighted);
  OK(MPI_Dist_graph_neighbors(graph, 1, &from, &in_weight, 1, &to, &out_weight));
  CHECK(from == other && to == other && in_weight == 1 && out_weight == 1);
  use_and_free(&graph, 2);
}

void topologies(void) {
  cartesian();
  graphs();
  distributed_graph();
}

void groups(void) {
  MPI_Group all, mine, others, made;
  int size = -1, rank = -1, result = -1, from = 0;
  int ranges[1][3] = {{1, 0, -1}};
  OK(MPI_Comm_group(W, &all));
  OK(MPI_Group_size(all, &size));
  OK(MPI_Group_rank(all, &rank));
  CHECK(size == 2 && rank == me);
  OK(MPI_Group_incl(all, 1, &me, &mine));
  OK(MPI_Group_excl(all, 1, &me, &others));
  OK(MPI_Group_translate_ranks(others, 1, &from, all, &rank));
  CHECK(rank == other);
  OK(MPI_Group_union(mine, others, &made));
  OK(MPI_Group_compare(all, made, &result));
  CHECK(result == (me == 0 ? MPI_IDENT : MPI_SIMILAR));
  OK(MPI_Group_free(&made));
  CHECK(made == MPI_GROUP_NULL);
  OK(MPI_Group_intersection(all, mine, &made));
  OK(MPI_Group_compare(mine, made, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&made));
  OK(MPI_Group_difference(all, mine, &made));
  OK(MPI_Group_compare(others, made, &result));
  CHECK(result == MPI_IDENT);
  OK(MPI_Group_free(&made));
  OK(MPI_Group_range_incl(all, 1, ranges, &made));
  OK(MPI_Group_rank(made, &rank));
  CHECK(rank == other);
  OK(MPI_Group_free(&made));
  OK(MPI_Group_range_excl(all, 1, ranges, &made));
  OK(MPI_Group_size(made, &size));
  CHECK(size == 0);
  if (made != MPI_GROUP_EMPTY) OK(MPI_Group_free(&made));
  OK(MPI_Group_free(&mine));
  OK(MPI_Group_free(&others));
  OK(MPI_Group_free(&all));
}
