// Calls that MPI refuses and whose error the program takes: the library's own answer comes, and
// what goes on afterwards is followed. One rank.
#include "tests/e2e/mpi/programs/check.h"

/// Null pointers where a call would write what it found. MPI looks at them after our wrapper.
static void refuse_results(void) {
  int value = 0;
  int flag = 0;
  int indices[1];
  MPI_Status status;
  MPI_Request requests[1];
  MPI_Irecv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, requests);
  CHECK(MPI_Waitany(1, requests, NULL, &status) != MPI_SUCCESS);
  CHECK(MPI_Waitsome(1, requests, NULL, indices, &status) != MPI_SUCCESS);
  CHECK(MPI_Testany(1, requests, NULL, &flag, &status) != MPI_SUCCESS);
  CHECK(MPI_Testsome(1, requests, NULL, indices, &status) != MPI_SUCCESS);
  int outcount = 1;  // as a program may have left it: the call does not write it
  CHECK(MPI_Waitsome(1, requests, &outcount, NULL, &status) != MPI_SUCCESS);
  CHECK(MPI_Testsome(1, requests, &outcount, NULL, &status) != MPI_SUCCESS);
  CHECK(MPI_Startall(2, NULL) != MPI_SUCCESS);
  MPI_Send(&flag, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  MPI_Wait(requests, &status);
}

/// MPICH reads arrays of counts before it looks whether there are any.
static void refuse_counts(void) {
#ifdef OPEN_MPI
  int value = 0;
  int other = 0;
  MPI_Request request;
  const MPI_Comm comm = MPI_COMM_WORLD;
  CHECK(MPI_Gatherv(&value, 1, MPI_INT, &other, NULL, NULL, MPI_INT, 0, comm) != 0);
  CHECK(MPI_Scatterv(&value, NULL, NULL, MPI_INT, &other, 1, MPI_INT, 0, comm) != 0);
  CHECK(MPI_Alltoallw(&value, NULL, NULL, NULL, &other, NULL, NULL, NULL, comm) != 0);
  CHECK(MPI_Reduce_scatter(&value, &other, NULL, MPI_INT, MPI_SUM, comm) != 0);
  CHECK(MPI_Ialltoallv(&value, NULL, NULL, MPI_INT, &other, NULL, NULL, MPI_INT, comm, &request) !=
        0);
#endif
}

/// MPICH does not free a window in an epoch; what the program does with it then is of that window.
static void refuse_end(void) {
  int* memory;
  int value = 1;
  MPI_Win window;
  MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_set_name(window, "held");
#ifndef OPEN_MPI
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  CHECK(MPI_Win_free(&window) != MPI_SUCCESS);
  MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_unlock(0, window);
#endif
  CHECK(MPI_Win_free(&window) == MPI_SUCCESS);
  MPI_Comm self = MPI_COMM_SELF;
  MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
  CHECK(MPI_Comm_free(&self) != MPI_SUCCESS);
  MPI_Sendrecv_replace(&value, 1, MPI_INT, 0, 0, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  refuse_results();
  refuse_counts();
  refuse_end();
  MPI_Finalize();
  return 0;
}
