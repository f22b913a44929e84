// Two ranks, MPI_THREAD_MULTIPLE: THREADS threads each exchange ROUNDS messages with their partner,
// started and completed in mixed ways, so that handles go from one thread to another at once.
// `threads THREADS ROUNDS`; `threads THREADS ROUNDS group`: each message on a communicator that the
// thread makes of the world's group for it.
#include <pthread.h>
#include <sched.h>

#include "tests/e2e/mpi/programs/check.h"

static int g_rounds;

static void* exchange(void* argument) {
  const int tag = *(const int*)argument;
  const int peer = 1 - world_rank();
  for (int round = 0; round < g_rounds; ++round) {
    MPI_Request requests[2];
    int out = round;
    int in = -1;
    int is_done = 0;
    MPI_Irecv(&in, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[1]);
    if (round % 3 == 0) {
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (round % 3 == 1) {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    } else {
      while (!is_done) MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
    }
    CHECK(in == round);
  }
  return NULL;
}

static void* exchange_in_group(void* argument) {
  const int tag = *(const int*)argument;
  const int rank = world_rank();
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  for (int round = 0; round < g_rounds; ++round) {
    int value = round;
    MPI_Comm comm;
    if ((rank + tag + round) % 3 == 0) sched_yield();
    MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm);
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_INT, 1, tag, comm);
    } else {
      MPI_Recv(&value, 1, MPI_INT, 0, tag, comm, MPI_STATUS_IGNORE);
    }
    CHECK(value == round);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&group);
  return NULL;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 4;
  g_rounds = argc > 2 ? atoi(argv[2]) : 200;
  pthread_t threads[64];
  int tags[64];
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  for (int i = 0; i < count; ++i) {
    tags[i] = i;
    pthread_create(&threads[i], NULL, argc > 3 ? exchange_in_group : exchange, &tags[i]);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  MPI_Finalize();
  return 0;
}
