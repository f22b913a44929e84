// Calls that MPI refuses and whose error the program takes: the library's own answer comes, and
// what goes on afterwards is followed. One rank.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/mpi/programs/check.h"
#include "tests/e2e/mpi/programs/persistent.h"

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

/// Handles that the program has not set; then more requests than the first table holds.
static void refuse_zero_handles(void) {
  enum { kFrees = 2000, kRequests = 1500 };
  static MPI_Request unset_request;  // static: all bits are 0
  static MPI_Comm unset_comm;
  static MPI_Win unset_window;
  static MPI_Request requests[2 * kRequests];
  static int values[2 * kRequests];
  // A table that was never used has nothing to confuse.
  MPI_Irecv(&values[0], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&values[1], 1, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kFrees; ++i) {
    MPI_Request request = unset_request;
    MPI_Comm comm = unset_comm;
    MPI_Win window = unset_window;
    CHECK(MPI_Request_free(&request) != MPI_SUCCESS);
    CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS);
    CHECK(MPI_Win_free(&window) != MPI_SUCCESS);
  }
  for (int i = 0; i < kRequests; ++i) {
    MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    MPI_Isend(&values[kRequests + i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &requests[kRequests + i]);
  }
  MPI_Waitall(2 * kRequests, requests, MPI_STATUSES_IGNORE);
}

/// A creation that one rank's library refuses is none: the next one is the same on all ranks.
static void refuse_creations(int rank) {
  MPI_Comm comm;
  if (rank == 0) {
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL) != MPI_SUCCESS);
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL) != MPI_SUCCESS);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "second try");
  MPI_Comm_free(&comm);
}

/// Where the result of MPI_Comm_idup stands may be gone when recording goes on.
static void forget_result(void) {
  enum { kRoom = 64 };  // a handle is a pointer or an int
  MPI_Comm* result = malloc(kRoom);
  MPI_Request request;
  MPI_Comm_idup(MPI_COMM_WORLD, result, &request);
  MPI_Pcontrol(0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_free(result);
  memset(result, 0x55, kRoom);
  // Its handle may come again.
  MPI_Request others[64];
  int ones[64];
  int values[64];
  for (int i = 0; i < 64; ++i) ones[i] = 1;
  for (int i = 0; i < 64; ++i)
    MPI_Iallreduce(&ones[i], &values[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &others[i]);
  MPI_Pcontrol(1);
  MPI_Waitall(64, others, MPI_STATUSES_IGNORE);
  free(result);
}

/// Collectives, the first ones of their kinds refused.
static void refuse_collectives(int is_refused) {
  int value = 0;
  MPI_Win window;
  if (is_refused) CHECK(MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  if (is_refused) CHECK(MPI_Win_fence(1 << 30, window) != MPI_SUCCESS);
  MPI_Win_fence(0, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Win_free(&window);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// The same of what is made.
static void refuse_to_make(int is_refused) {
  int value = 0;
  MPI_Comm comm;
  MPI_Win window;
  if (is_refused) {
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, NULL) != MPI_SUCCESS);
    CHECK(MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) != MPI_SUCCESS);
  }
  MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Comm_free(&comm);
}

/// The same of a persistent collective: it is started beside a request that is none, and, where the
/// library refuses that, again while it is active.
static void refuse_to_start(int is_refused) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  PREPARE(Barrier)(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  if (is_refused) CHECK(MPI_Startall(2, requests) != MPI_SUCCESS);
  MPI_Start(&requests[0]);
#ifndef OPEN_MPI
  if (is_refused) CHECK(MPI_Start(&requests[0]) != MPI_SUCCESS);
#endif
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Start(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// The same of an access to a file, and of a file that is not there.
static void refuse_access(int is_refused, const char* folder) {
  char path[4096];
  char value[8] = "written";
  MPI_File file;
  snprintf(path, sizeof path, "%s/not there", folder);
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
  snprintf(path, sizeof path, "%s/refused", folder);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  if (is_refused)
    CHECK(MPI_File_write_at_all(file, 0, value, -1, MPI_CHAR, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_File_set_size(file, 8);
  MPI_File_write_at_all(file, 0, value, 8, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) {
    if (strcmp(argv[1], "zero") == 0) refuse_zero_handles();
    if (strcmp(argv[1], "creations") == 0) refuse_creations(rank);
    if (strcmp(argv[1], "result") == 0) forget_result();
    if (strcmp(argv[1], "alike") == 0) refuse_collectives(1);
    if (strcmp(argv[1], "alone") == 0) refuse_collectives(rank == 0);
    if (strcmp(argv[1], "made_alike") == 0) refuse_to_make(1);
    if (strcmp(argv[1], "made_alone") == 0) refuse_to_make(rank == 0);
    if (strcmp(argv[1], "start_alike") == 0) refuse_to_start(1);
    if (strcmp(argv[1], "start_alone") == 0) refuse_to_start(rank == 0);
    if (strcmp(argv[1], "file_alike") == 0) refuse_access(1, argv[2]);
    if (strcmp(argv[1], "file_alone") == 0) refuse_access(rank == 0, argv[2]);
    MPI_Finalize();
    return 0;
  }
  refuse_results();
  refuse_counts();
  refuse_end();
  MPI_Finalize();
  return 0;
}
