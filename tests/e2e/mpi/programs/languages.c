// Requests and communicators that C and Fortran share in one process, which sends to itself:
// message TAG has TAG integers, and each receive has a tag of its own. Fortran's functions are
// called as a compiler calls them.
#include <mpi.h>

#include "tests/e2e/mpi/programs/check.h"

#define OK(call) CHECK((call) == MPI_SUCCESS)

enum { kMost = 64 };

void mpi_irecv_(int* data, int* count, int* type, int* from, int* tag, int* comm, int* request,
                int* error);
void mpi_recv_init_(int* data, int* count, int* type, int* from, int* tag, int* comm, int* request,
                    int* error);
void mpi_start_(int* request, int* error);
void mpi_wait_(int* request, int* status, int* error);
void mpi_waitall_(int* count, int* requests, int* statuses, int* error);
void mpi_testsome_(int* in_count, int* requests, int* out_count, int* indices, int* statuses,
                   int* error);
void mpi_request_free_(int* request, int* error);
void mpi_send_(int* data, int* count, int* type, int* to, int* tag, int* comm, int* error);

static int g_in[kMost], g_out[kMost];
static int g_last_tag;
static int g_self, g_type, g_none;  // as Fortran has them
static int g_most = kMost, g_me = 0, g_error;
static int g_status[4 * sizeof(MPI_Status)];

static int begin_in_fortran(void) {
  int request;
  ++g_last_tag;
  mpi_irecv_(g_in, &g_most, &g_type, &g_me, &g_last_tag, &g_self, &request, &g_error);
  CHECK(g_error == MPI_SUCCESS);
  return request;
}

static MPI_Request begin_in_c(void) {
  MPI_Request request;
  OK(MPI_Irecv(g_in, kMost, MPI_INT, 0, ++g_last_tag, MPI_COMM_SELF, &request));
  return request;
}

static void answer(int tag) { OK(MPI_Send(g_out, tag, MPI_INT, 0, tag, MPI_COMM_SELF)); }

static void wait_in_fortran(int request) {
  mpi_wait_(&request, g_status, &g_error);
  CHECK(g_error == MPI_SUCCESS && request == g_none);
}

static void wait_in_c(MPI_Request request) { OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); }

// The same numbers and handles come back from round to round.
static void cross(void) {
  const int in_fortran = begin_in_fortran();
  const MPI_Request in_c = begin_in_c();
  const int left_in_fortran = begin_in_fortran();
  const MPI_Request as_c = MPI_Request_f2c(in_fortran);
  const int as_fortran = MPI_Request_c2f(in_c);
  for (int i = 2; i >= 0; --i) answer(g_last_tag - i);
  wait_in_fortran(as_fortran);
  wait_in_c(as_c);
  wait_in_fortran(left_in_fortran);
}

static void wait_for_all(void) {
  int requests[] = {begin_in_fortran(), g_none, MPI_Request_c2f(begin_in_c()), begin_in_fortran()};
  int count = 4;
  for (int i = 2; i >= 0; --i) answer(g_last_tag - i);
  mpi_waitall_(&count, requests, g_status, &g_error);
  CHECK(g_error == MPI_SUCCESS && requests[0] == g_none && requests[2] == g_none);
}

static void test_some(void) {
  int requests[] = {MPI_Request_c2f(begin_in_c()), begin_in_fortran()};
  int count = 2, left = 2, indices[2];
  answer(g_last_tag);
  answer(g_last_tag - 1);
  while (left > 0) {
    int found = 0;
    mpi_testsome_(&count, requests, &found, indices, g_status, &g_error);
    CHECK(g_error == MPI_SUCCESS);
    if (found > 0) left -= found;
  }
}

// C polls for the first time by a function that Fortran has polled by before.
static void test_some_in_c(void) {
  MPI_Request requests[] = {begin_in_c(), begin_in_c()};
  int left = 2, indices[2];
  answer(g_last_tag);
  answer(g_last_tag - 1);
  while (left > 0) {
    int found = 0;
    OK(MPI_Testsome(2, requests, &found, indices, MPI_STATUSES_IGNORE));
    if (found > 0) left -= found;
  }
}

static void start_in_turn(void) {
  int request;
  ++g_last_tag;
  mpi_recv_init_(g_in, &g_most, &g_type, &g_me, &g_last_tag, &g_self, &request, &g_error);
  mpi_start_(&request, &g_error);
  answer(g_last_tag);
  mpi_wait_(&request, g_status, &g_error);
  mpi_start_(&request, &g_error);
  answer(g_last_tag);
  MPI_Request as_c = MPI_Request_f2c(request);
  OK(MPI_Wait(&as_c, MPI_STATUS_IGNORE));
  OK(MPI_Start(&as_c));
  answer(g_last_tag);
  mpi_wait_(&request, g_status, &g_error);
  CHECK(g_error == MPI_SUCCESS);
  mpi_request_free_(&request, &g_error);
}

// The numbers of what is freed are the next ones', and so are the handles, in another order.
static void use_copies(void) {
  for (int i = 0; i < 3; ++i) {
    MPI_Comm copies[2];
    for (int j = 0; j < 2; ++j) OK(MPI_Comm_dup(MPI_COMM_SELF, &copies[j]));
    for (int j = 0; j < 2; ++j) {
      MPI_Request request;
      int comm = MPI_Comm_c2f(copies[j]);
      OK(MPI_Irecv(g_in, kMost, MPI_INT, 0, ++g_last_tag, copies[j], &request));
      mpi_send_(g_out, &g_last_tag, &g_type, &g_me, &g_last_tag, &comm, &g_error);
      CHECK(g_error == MPI_SUCCESS);
      wait_in_c(request);
    }
    for (int j = 0; j < 2; ++j) OK(MPI_Comm_free(&copies[j]));
  }
}

// A request that began before a pause, and one that crosses in it.
static void pause_between(void) {
  const int in_fortran = begin_in_fortran();
  const int other = begin_in_fortran();
  answer(g_last_tag);
  answer(g_last_tag - 1);
  MPI_Pcontrol(0);
  const MPI_Request as_c = MPI_Request_f2c(in_fortran);
  MPI_Pcontrol(1);
  wait_in_c(as_c);
  wait_in_fortran(other);
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  g_self = MPI_Comm_c2f(MPI_COMM_SELF);
  g_type = MPI_Type_c2f(MPI_INT);
  g_none = MPI_Request_c2f(MPI_REQUEST_NULL);
  const int first = begin_in_fortran();  // before C has any
  answer(g_last_tag);
  wait_in_fortran(first);
  for (int i = 0; i < 3; ++i) cross();
  wait_for_all();
  test_some();
  test_some_in_c();
  start_in_turn();
  use_copies();
  pause_between();
  int freed = begin_in_fortran();
  answer(g_last_tag);
  mpi_request_free_(&freed, &g_error);
  cross();
  OK(MPI_Finalize());
  return 0;
}
