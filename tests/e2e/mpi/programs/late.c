/// Four ranks; in each scene, which all begin at the same time, somebody comes late on purpose.
/// late SCENE_MS: a scene's length; who is late, is so by half of that. Each rank says by how much
/// the machine made it later than that, at most.
#include "tests/e2e/mpi/programs/persistent.h"
#include "tests/e2e/mpi/programs/scenes.h"

/// Neighbours in all kinds of topologies. Who needs no data of the one who is late goes on at once.
static void meet_neighbors(int rank) {
  const int one = 1;
  const int zero = 0;
  int values[2];
  MPI_Comm ring;
  MPI_Comm line;
  MPI_Comm pairs;
  MPI_Comm arrow;
  MPI_Request request;
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){4}, &one, 0, &ring);
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){4}, &zero, 0, &line);
  MPI_Graph_create(MPI_COMM_WORLD, 4, (int[]){1, 2, 3, 4}, (int[]){1, 0, 3, 2}, 0, &pairs);
  // Rank 3 gets from rank 1, and nobody else gets anything.
  const int source = 1;
  const int target = 3;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 3, &source, MPI_UNWEIGHTED, rank == 1,
                                 &target, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &arrow);
  begin(rank == 0);  // ranks 1 and 3 wait
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, values, 1, MPI_INT, ring);
  CHECK(values[0] == (rank + 3) % 4 && values[1] == (rank + 1) % 4);
  begin(rank == 3);  // rank 2 waits
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, values, 1, MPI_INT, pairs, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(values[0] == (rank ^ 1));
  begin(rank == 1);  // rank 3 waits
  MPI_Neighbor_alltoall(&rank, 1, MPI_INT, values, 1, MPI_INT, arrow);
  CHECK(rank != 3 || values[0] == 1);
  begin(rank == 2);  // ranks 1 and 3 wait; it has rank 3 at the end of the line
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, values, 1, MPI_INT, line);
  CHECK(rank == 3 || values[1] == rank + 1);
  MPI_Comm_free(&line);
  MPI_Comm_free(&arrow);
  MPI_Comm_free(&pairs);
  MPI_Comm_free(&ring);
}

/// Persistent collectives, made in one order and started in another.
static void start_persistent(int rank) {
  int sum = 0;
  MPI_Request requests[2];
  PREPARE(Allreduce)
  (&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  PREPARE(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  begin(0);
  if (rank == 0) {
    MPI_Startall(2, requests);
  } else {
    MPI_Start(&requests[1]);
    if (rank == 3) be_late();  // the others wait in the sum alone
    MPI_Start(&requests[0]);
  }
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  CHECK(sum == 6);
  begin(rank == 1);
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

/// Two groups, ranks 0 and 1, 2 and 3. Nobody waits for its own group.
static void meet_other_group(int rank) {
  const int is_first = rank < 2;
  const int mine[2] = {rank, rank};
  int value = rank;
  int values[2] = {0, 0};
  MPI_Comm own;
  MPI_Comm both;
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, is_first, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_first ? 2 : 0, 7, &both);
  begin(rank == 3);  // ranks 0 and 1 wait
  MPI_Barrier(both);
  begin(rank == 0);  // ranks 2 and 3 wait
  MPI_Alltoall(mine, 1, MPI_INT, values, 1, MPI_INT, both);
  CHECK(values[0] == (is_first ? 2 : 0) && values[1] == values[0] + 1);
  begin(rank == 1);  // the same, for the root
  MPI_Bcast(&value, 1, MPI_INT, !is_first ? 1 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL, both);
  CHECK(is_first || value == 1);
  begin(is_first);  // rank 2 waits for the first of the others
  MPI_Gather(&rank, 1, MPI_INT, values, 1, MPI_INT,
             is_first    ? 0
             : rank == 2 ? MPI_ROOT
                         : MPI_PROC_NULL,
             both);
  CHECK(rank != 2 || (values[0] == 0 && values[1] == 1));
  begin(rank == 2);  // ranks 0 and 1 wait
  MPI_Ibarrier(both, &request);
  MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&both);
  MPI_Comm_free(&own);
}

/// Looks for it until it is there.
static void poll(MPI_Request* request) {
  int is_complete = 0;
  const struct timespec pause = {0, 200000};
  while (is_complete == 0) {
    MPI_Test(request, &is_complete, MPI_STATUS_IGNORE);
    if (is_complete == 0) nanosleep(&pause, NULL);
  }
}

/// Who polls waits as well, but it is not known for how long.
static void poll_for_late_partners(int rank) {
  int value = 0;
  MPI_Request request;
  begin(rank == 0);  // rank 1 polls for its message
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Irecv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
    poll(&request);
  }
  begin(rank == 2);  // all others poll for it
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  poll(&request);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  start_scenes(argc > 1 ? atol(argv[1]) : 400);

  int value = 0;
  int sum = 0;
  int ranks[4];
  begin(rank == 0);  // late sender
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

  begin(rank == 3);  // late receiver
  if (rank == 2) MPI_Ssend(&value, 1, MPI_INT, 3, 2, MPI_COMM_WORLD);
  if (rank == 3) MPI_Recv(&value, 1, MPI_INT, 2, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

  begin(rank == 1);  // late sender, seen in a wait for several
  if (rank == 0) {
    MPI_Request requests[2];
    int values[2];
    MPI_Irecv(&values[0], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, 2, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else if (rank < 3) {
    MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
  }

  start_persistent(rank);
  begin(rank == 2);
  MPI_Barrier(MPI_COMM_WORLD);
  begin(rank == 3);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  begin(rank == 0);
  MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  begin(rank != 1);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  begin(rank == 1);
  MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Request request;
  begin(rank == 2);  // seen in the wait for a collective that was started
  MPI_Iallgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(ranks[3] == 3);
  meet_neighbors(rank);
  meet_other_group(rank);
  poll_for_late_partners(rank);
  end_scenes();
  MPI_Finalize();
  return 0;
}
