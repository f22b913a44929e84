// One case per run, `life CASE`: errors, abort, no MPI_Finalize, calls before and after, pauses,
// derived types, a user's reduction that calls MPI, a standard error of its own.
#include <unistd.h>

#include "tests/e2e/mpi/programs/check.h"

static int g_handled;

static void handle(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++g_handled;
}

/// A library may return codes that say more than their class.
static int class_of(int code) {
  int error_class;
  MPI_Error_class(code, &error_class);
  return error_class;
}

/// MPI_ERRORS_RETURN and a handler of the program see what they saw without us.
static void errors(int rank) {
  char buffer[8] = "";
  MPI_Errhandler handler;
  MPI_Request requests[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(MPI_Send(buffer, 1, MPI_CHAR, 77, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Isend(buffer, -1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, requests) != MPI_SUCCESS);
  CHECK(MPI_Bcast(buffer, 1, MPI_CHAR, 99, MPI_COMM_WORLD) != MPI_SUCCESS);
  CHECK(MPI_Barrier(MPI_COMM_NULL) != MPI_SUCCESS);
  if (rank == 0) MPI_Send(buffer, 8, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) {
    const int code = MPI_Recv(buffer, 4, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPI_ERR_TRUNCATE);
  }
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Send(buffer, 1, MPI_CHAR, 77, 0, MPI_COMM_WORLD);
  CHECK(g_handled == 1);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/// Both receives get too much, and are complete when the first of them is waited for, or tested:
/// Open MPI frees the other one as well, and says nothing of it.
static void failing_together(int rank) {
  char out[8] = "";
  char in[2][4];
  int index = 0;
  MPI_Request requests[2];
  for (int tag = 6; tag <= 8; tag += 2) {
    for (int i = 0; i < 2; ++i)
      MPI_Irecv(in[i], 4, MPI_CHAR, 1 - rank, tag + i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) MPI_Send(out, 8, MPI_CHAR, 1 - rank, tag + i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) {
      int flag;
      if (tag == 6) {
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      } else {
        MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
      }
    }
  }
}

/// Each of the two receives of a Waitall, then of a Waitsome: the first gets too much.
static void failing_requests(int rank) {
  char out[8] = "";
  char in[2][8];
  int count;
  int indices[2];
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int tag = 1; tag <= 3; tag += 2) {
    MPI_Irecv(in[0], 4, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in[1], 8, MPI_CHAR, 1 - rank, tag + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) MPI_Send(out, 8, MPI_CHAR, 1 - rank, tag + i, MPI_COMM_WORLD);
    if (tag == 1) {
      CHECK(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
      CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
      // A library may stop at the first that failed, and leave the others to another call.
      if (class_of(statuses[1].MPI_ERROR) == MPI_ERR_PENDING) MPI_Wait(&requests[1], &statuses[1]);
      CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    }
    for (int left = tag == 1 ? 0 : 2; left > 0; left -= count) {
      MPI_Waitsome(2, requests, &count, indices, statuses);
      CHECK(count > 0);
    }
  }
  // A persistent one may keep its handle when it fails.
  MPI_Recv_init(in[0], 4, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Start(&requests[0]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(out, 8, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD);
  CHECK(class_of(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
  if (requests[0] != MPI_REQUEST_NULL) MPI_Request_free(&requests[0]);
  failing_together(rank);
}

static void pauses(int rank) {
  int value = 0;
  MPI_Comm comm;
  MPI_Request request;
  for (int round = 0; round < 3; ++round) {
    MPI_Pcontrol(round % 2 == 0 ? 1 : 0);
    for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &value);
  }
  // Made while paused on one rank only: the identity of the next one must agree all the same.
  if (rank == 0) MPI_Pcontrol(0);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
  MPI_Irecv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &request);
  MPI_Send(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "after");
  MPI_Comm_free(&comm);
}

static void sum(void* in, void* out, int* count, MPI_Datatype* type) {
  int size;
  MPI_Type_size(*type, &size);  // a call inside a call
  for (int i = 0; i < *count; ++i) ((int*)out)[i] += ((int*)in)[i];
}

static void derived(int rank) {
  static int out[64];
  static int in[64];
  MPI_Datatype column;
  MPI_Op op;
  MPI_Type_vector(8, 1, 8, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(out, 1, column, 1 - rank, 5, in, 8, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  MPI_Op_create(sum, 1, &op);
  MPI_Allreduce(out, in, 8, MPI_INT, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);
}

/// More requests than are followed, all of them live at once.
static void too_many(void) {
  enum { kMany = 200000 };  // MPICH has no more than 262144
  static char in[1];
  MPI_Request* requests = malloc(kMany * sizeof *requests);
  for (int i = 0; i < kMany; ++i) {
    MPI_Irecv(in, 1, MPI_CHAR, 0, 9, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kMany; ++i) {
    MPI_Cancel(&requests[i]);
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  free(requests);
}

/// Its standard error is a file of its own from now on.
static void own_log(int rank) {
  char name[32];
  snprintf(name, sizeof name, "log.%d", rank);
  FILE* file = fopen(name, "w");
  CHECK(file != NULL && dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
  fclose(file);
  fprintf(stderr, "log of rank %d\n", rank);
}

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  int flag;
  MPI_Initialized(&flag);
  CHECK(!flag);
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  if (strcmp(wanted, "errors") == 0) errors(rank);
  if (strcmp(wanted, "failing_requests") == 0) failing_requests(rank);
  if (strcmp(wanted, "pauses") == 0) pauses(rank);
  if (strcmp(wanted, "derived") == 0) derived(rank);
  if (strcmp(wanted, "too_many") == 0) too_many();
  if (strcmp(wanted, "own_log") == 0) own_log(rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(wanted, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(wanted, "abort") == 0) pause();
  if (strcmp(wanted, "no_finalize") == 0) _exit(3);
  if (strcmp(wanted, "dies") == 0 && rank == 1) abort();
  if (strcmp(wanted, "leaves") == 0 && rank == 1) exit(0);
  if (strcmp(wanted, "dies") == 0 || strcmp(wanted, "leaves") == 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  MPI_Finalized(&flag);
  CHECK(flag);
  MPI_Initialized(&flag);
  CHECK(flag);
  return strcmp(wanted, "code") == 0 ? 5 : 0;
}
