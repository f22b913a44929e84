// Two ranks: what MPI-4 adds, in an order that mpi_test.py knows; tag t is form t, the message has
// t doubles. `mpi4 CASE`
#include "tests/e2e/mpi/programs/check.h"

static double g_out[256];
static double g_in[256];
#define D MPI_DOUBLE
#define W MPI_COMM_WORLD

#if MPI_VERSION < 4  // Open MPI 5 has the rest of MPI-4
#define MPI_Isendrecv_c MPI_Isendrecv
#define MPI_Alltoall_init_c MPI_Alltoall_init
static void large_counts(int rank) { printf("%d: no large counts in this library\n", rank); }
#else

static void large_counts(int rank) {
  const MPI_Count counts[2] = {1, 2};
  const MPI_Aint places[2] = {0, 1};
  const int peer = 1 - rank;
  MPI_Status status;
  MPI_Request requests[2];
  MPI_Count count;
  MPI_Sendrecv_c(g_out, 1, D, peer, 1, g_in, 64, D, MPI_ANY_SOURCE, 1, W, &status);
  MPI_Get_count_c(&status, D, &count);
  CHECK(count == 1);
  if (rank == 0) MPI_Send_c(g_out, 2, D, 1, 2, W);
  if (rank == 1) MPI_Recv_c(g_in, 64, D, 0, 2, W, MPI_STATUS_IGNORE);
  MPI_Irecv_c(g_in, 64, D, peer, 3, W, &requests[0]);
  MPI_Isend_c(g_out, 3, D, peer, 3, W, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Bcast_c(g_out, 5, D, 1, W);
  MPI_Allgatherv_c(g_out, counts[rank], D, g_in, counts, places, D, W);
  MPI_Iallreduce_c(g_out, g_in, 6, D, MPI_SUM, W, requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
}
#endif

/// Prints how many of the statuses say what came: those of MPICH 4.0 are empty.
static void isendrecv(int rank) {
  MPI_Request requests[2];
  MPI_Status statuses[5] = {0};
  int is_done = 0;
  int told_count = 0;
  const int peer = 1 - rank;
  MPI_Isendrecv(g_out, 4, D, peer, 4, g_in, 64, D, MPI_ANY_SOURCE, MPI_ANY_TAG, W, requests);
  MPI_Wait(requests, &statuses[0]);
  MPI_Isendrecv_replace(g_out, 5, D, peer, 5, peer, 5, W, requests);
  while (!is_done) MPI_Test(requests, &is_done, &statuses[1]);
  MPI_Isendrecv(g_out, 6, D, peer, 6, g_in, 64, D, peer, 6, W, &requests[0]);
  MPI_Isendrecv_c(g_out, 7, D, peer, 7, g_in + 64, 64, D, peer, 7, W, &requests[1]);
  MPI_Waitall(2, requests, &statuses[2]);
  for (int i = 0; i < 4; ++i) {
    told_count += statuses[i].MPI_SOURCE == peer && statuses[i].MPI_TAG == 4 + i;
  }
  printf("%d told\n", told_count);
}

/// Two with one envelope: the sender starts them in the other order, and MPI does not care.
static void partitioned(int rank) {
  enum { kParts = 4, kEach = 2, kSize = kParts * kEach };  // 8 doubles with tag 8
  MPI_Request requests[2];
  int list[1] = {3};
  for (int i = 0; i < 2; ++i) {
    double* place = (rank == 0 ? g_out : g_in) + i * kSize;
    if (rank == 0) {
      *place = i + 1;
      MPI_Psend_init(place, kParts, kEach, D, 1, 8, W, MPI_INFO_NULL, &requests[i]);
    } else {
      MPI_Precv_init(place, kParts, kEach, D, 0, 8, W, MPI_INFO_NULL, &requests[i]);
    }
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 2; ++i) {
      MPI_Request* request = &requests[rank == 0 ? 1 - i : i];
      MPI_Start(request);
      if (rank == 1) continue;
      MPI_Pready(0, *request);
      MPI_Pready_range(1, 2, *request);
      MPI_Pready_list(1, list, *request);
    }
    for (int i = 0; rank == 1 && i < 2 * kParts; ++i) {
      for (int flag = 0; !flag;) MPI_Parrived(requests[i % 2], i / 2, &flag);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(rank == 0 || (g_in[0] == 1 && g_in[kSize] == 2));
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}

static void run(MPI_Request* request) {
  for (int round = 0; round < 2; ++round) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  MPI_Startall(1, request);
  MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  MPI_Request_free(request);
}

static void persistent(int rank) {
  static int counts[2] = {1, 2};
  static int places[2] = {0, 1};
  MPI_Request r;
  MPI_Barrier_init(W, MPI_INFO_NULL, &r);
  run(&r);
  MPI_Bcast_init(g_out, 3, D, 1, W, MPI_INFO_NULL, &r);
  run(&r);
  MPI_Allreduce_init(g_out, g_in, 3, D, MPI_SUM, W, MPI_INFO_NULL, &r);
  run(&r);
  MPI_Gatherv_init(g_out, counts[rank], D, g_in, counts, places, D, 0, W, MPI_INFO_NULL, &r);
  run(&r);
  MPI_Alltoall_init_c(g_out, 3, D, g_in, 3, D, W, MPI_INFO_NULL, &r);
  run(&r);
}

static void communicators(void) {
  MPI_Comm comm;
  MPI_Group group;
  MPI_Request request;
  MPI_Comm_idup_with_info(W, MPI_INFO_NULL, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_set_name(comm, "idup");
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_group(W, &group);
  MPI_Comm_create_from_group(group, "tag", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_set_name(comm, "from group");
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}

static void use(MPI_Session session, const char* name) {
  MPI_Group group;
  MPI_Comm comm;
  int rank;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  CHECK(MPI_Comm_create_from_group(group, "a", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == 0);
  MPI_Comm_set_name(comm, name);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  MPI_Sendrecv(g_out, 9, D, 1 - rank, 9, g_in, 64, D, 1 - rank, 9, comm, MPI_STATUS_IGNORE);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

/// No MPI_Init at all, and the session that was first ends first.
static int sessions(void) {
  MPI_Session first;
  MPI_Session second;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &first) == MPI_SUCCESS);
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second) == MPI_SUCCESS);
  use(first, "first");
  CHECK(MPI_Session_finalize(&first) == MPI_SUCCESS);
  use(second, "second");
  CHECK(MPI_Session_finalize(&second) == MPI_SUCCESS);
  return 0;
}

/// So many live at once; half of them end, then the last one is used.
static int many_sessions(int count) {
  MPI_Session* all = malloc((size_t)count * sizeof *all);
  for (int i = 0; i < count; ++i) {
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &all[i]) == MPI_SUCCESS);
  }
  for (int i = 0; i < count / 2; ++i) MPI_Session_finalize(&all[i]);
  use(all[count - 1], "late");
  for (int i = count / 2; i < count; ++i) MPI_Session_finalize(&all[i]);
  free(all);
  return 0;
}

/// One that lives on behind MPI_Finalize.
static int session_beyond(void) {
  MPI_Session session;
  MPI_Init(NULL, NULL);
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  use(session, "within");
  MPI_Finalize();
  use(session, "beyond");
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
  return 0;
}

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  if (strcmp(wanted, "sessions") == 0) return sessions();
  if (strcmp(wanted, "many_sessions") == 0) return many_sessions(atoi(argv[2]));
  if (strcmp(wanted, "session_beyond") == 0) return session_beyond();
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  if (strcmp(wanted, "large") == 0) large_counts(rank);
  if (strcmp(wanted, "isendrecv") == 0) isendrecv(rank);
  if (strcmp(wanted, "partitioned") == 0) partitioned(rank);
  if (strcmp(wanted, "persistent") == 0) persistent(rank);
  if (strcmp(wanted, "communicators") == 0) communicators();
  MPI_Finalize();
  return 0;
}
