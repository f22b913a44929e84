// Two ranks, every blocking and non-blocking form once, in an order that mpi_test.py knows: tag
// t is form t, the message has 8 * t bytes.
#include "tests/e2e/mpi/programs/check.h"

static double g_out[64];
static double g_in[64];
static char g_buffer[1 << 16];

static void receive(int tag) {
  MPI_Status status;
  int count;
  MPI_Recv(g_in, 64, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  CHECK(count == tag && status.MPI_TAG == tag);
}

static void blocking(int rank) {
  int is_there = 0;
  MPI_Message message;
  if (rank == 0) {
    MPI_Buffer_attach(g_buffer, sizeof g_buffer);
    MPI_Send(g_out, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    MPI_Ssend(g_out, 2, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD);
    MPI_Bsend(g_out, 3, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Rsend(g_out, 4, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD);
    MPI_Send(g_out, 5, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD);
    MPI_Send(g_out, 6, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD);
    MPI_Send(g_out, 7, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
    MPI_Send(g_out, 8, MPI_DOUBLE, 1, 8, MPI_COMM_WORLD);
    void* address;
    int size;
    MPI_Buffer_detach(&address, &size);
    return;
  }
  receive(1);
  receive(2);
  receive(3);
  MPI_Request ready;
  MPI_Irecv(g_in, 64, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, &ready);
  MPI_Send(NULL, 0, MPI_BYTE, 0, 40, MPI_COMM_WORLD);
  MPI_Wait(&ready, MPI_STATUS_IGNORE);
  MPI_Recv(g_in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Probe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  receive(6);
  MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(g_in, 64, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
  while (!is_there) {
    MPI_Improbe(0, 8, MPI_COMM_WORLD, &is_there, &message, MPI_STATUS_IGNORE);
  }
  MPI_Request request;
  MPI_Imrecv(g_in, 64, MPI_DOUBLE, &message, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exchange(int rank) {
  MPI_Status status;
  MPI_Sendrecv(g_out, 9, MPI_DOUBLE, 1 - rank, 9, g_in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(g_out, 10, MPI_DOUBLE, 1 - rank, 10, 1 - rank, 10, MPI_COMM_WORLD, &status);
  MPI_Sendrecv(g_out, 3, MPI_DOUBLE, MPI_PROC_NULL, 11, g_in, 64, MPI_DOUBLE, MPI_PROC_NULL, 11,
               MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
  MPI_Send(g_out, 5, MPI_DOUBLE, MPI_PROC_NULL, 12, MPI_COMM_WORLD);
  MPI_Recv(g_in, 5, MPI_DOUBLE, MPI_PROC_NULL, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void nonblocking(int rank) {
  MPI_Request requests[4];
  MPI_Status status;
  int is_done = 0;
  if (rank == 1) {
    for (int i = 0; i < 4; ++i) {
      MPI_Irecv(g_in + 16 * i, 16, MPI_DOUBLE, MPI_ANY_SOURCE, 13 + i, MPI_COMM_WORLD,
                &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  } else {
    MPI_Buffer_attach(g_buffer, sizeof g_buffer);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(g_out, 13, MPI_DOUBLE, 1, 13, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(g_out, 14, MPI_DOUBLE, 1, 14, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibsend(g_out, 15, MPI_DOUBLE, 1, 15, MPI_COMM_WORLD, &requests[2]);
    MPI_Irsend(g_out, 16, MPI_DOUBLE, 1, 16, MPI_COMM_WORLD, &requests[3]);
    MPI_Wait(&requests[0], &status);
    while (!is_done) MPI_Test(&requests[1], &is_done, MPI_STATUS_IGNORE);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    void* address;
    int size;
    MPI_Buffer_detach(&address, &size);
  }
  MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void persistent(int rank) {
  MPI_Request requests[2];
  MPI_Send_init(g_out, 17, MPI_DOUBLE, 1 - rank, 17, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(g_in, 64, MPI_DOUBLE, MPI_ANY_SOURCE, 17, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 3; ++round) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);  // inactive: completes nothing
  }
  MPI_Start(&requests[0]);
  MPI_Start(&requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void cancel(void) {
  MPI_Request request;
  MPI_Status status;
  int is_cancelled;
  MPI_Irecv(g_in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &is_cancelled);
  CHECK(is_cancelled);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  blocking(rank);
  exchange(rank);
  nonblocking(rank);
  persistent(rank);
  cancel();
  MPI_Finalize();
  return 0;
}
