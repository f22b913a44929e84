// A program of MPI 5's ABI (standard_abi_library.c). Exits with 0 when all gave what it must.
#include "tests/e2e/mpi/programs/standard_abi.h"

enum { kMessages = 100, kRoom = 8 };

static int failures;

static void check(int condition) {
  if (!condition) ++failures;
}

static void exchange(MPI_Comm comm) {
  for (int i = 0; i < kMessages; ++i) {
    const int count = 1 + i % 4;
    int out[kRoom] = {i, i, i, i};
    int in[kRoom] = {0};
    MPI_Request requests[2];
    MPI_Status statuses[2];
    check(MPI_Irecv(in, kRoom, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]) == 0);
    check(MPI_Isend(out, count, MPI_INT, 0, i, comm, &requests[1]) == 0);
    // Every second program ignores its statuses; what was received is known all the same.
    check(MPI_Waitall(2, requests, i % 2 == 0 ? statuses : MPI_STATUSES_IGNORE) == 0);
    int received = count;
    if (i % 2 == 0) MPI_Get_count(&statuses[0], MPI_INT, &received);
    check(received == count && in[0] == i && requests[0] == MPI_REQUEST_NULL);
  }
}

/// Their requests are one handle.
static void send_many(MPI_Comm comm) {
  int value = 0;
  MPI_Request requests[4];
  for (int i = 0; i < 3; ++i) check(MPI_Isend(&i, 1, MPI_INT, 0, 200, comm, &requests[i]) == 0);
  check(MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 200, comm, &requests[3]) == 0);
  for (int i = 0; i < 3; ++i) {
    check(MPI_Recv(&value, 1, MPI_INT, 0, 200, comm, MPI_STATUS_IGNORE) == 0 && value == i);
  }
  check(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE) == 0);
}

int main(int argc, char** argv) {
  int level = 0;
  int flag = 0;
  int count = 0;
  double values[3] = {1, 2, 3};
  double in[kRoom];
  MPI_Comm copy;
  MPI_Request request;
  MPI_Status status;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) == 0);
  check(level == MPI_THREAD_MULTIPLE);
  check(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == 0);
  check(MPI_Comm_set_name(copy, "copy") == 0);
  exchange(copy);
  send_many(copy);
  check(MPI_Send(values, 3, MPI_DOUBLE, 0, 7, MPI_COMM_SELF) == 0);
  check(MPI_Recv(in, kRoom, MPI_DOUBLE, 0, 7, MPI_COMM_SELF, &status) == 0);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  check(count == 3 && status.MPI_TAG == 7);
  check(MPI_Recv(in, kRoom, MPI_DOUBLE, MPI_PROC_NULL, 7, copy, MPI_STATUS_IGNORE) == 0);
  check(MPI_Irecv(in, kRoom, MPI_DOUBLE, 0, 9, copy, &request) == 0);
  check(MPI_Cancel(&request) == 0);
  check(MPI_Wait(&request, &status) == 0);
  MPI_Test_cancelled(&status, &flag);
  check(flag == 1);
  check(MPI_Allreduce(values, in, 3, MPI_DOUBLE, MPI_SUM, copy) == 0);
  check(MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_DOUBLE, MPI_SUM, copy) == 0);
  check(MPI_Comm_free(&copy) == 0 && copy == MPI_COMM_NULL);
  check(MPI_Barrier(MPI_COMM_WORLD) == 0);
  check(MPI_Finalize() == 0);
  return failures == 0 ? 0 : 1;
}
