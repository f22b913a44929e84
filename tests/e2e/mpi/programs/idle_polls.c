// One rank: polls that MPI answers with "complete" though nothing has ended by them, kPolls of each
// form, and a few that end something: two messages to itself by each of MPI_Test and MPI_Testall,
// and one by MPI_Wait of which MPI_Request_get_status has told.
#include "tests/e2e/mpi/programs/check.h"

enum { kPolls = 20000, kNulls = 4 };

static int g_in;
static int g_out;

static void poll_what_is_not_active(MPI_Request inactive[2]) {
  MPI_Request nulls[kNulls];
  int is_done;
  for (int i = 0; i < kNulls; ++i) nulls[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < kPolls; ++i) {
    MPI_Testall(0, nulls, &is_done, MPI_STATUSES_IGNORE);
    MPI_Testall(kNulls, nulls, &is_done, MPI_STATUSES_IGNORE);
    MPI_Testall(2, inactive, &is_done, MPI_STATUSES_IGNORE);
    MPI_Test(&inactive[0], &is_done, MPI_STATUS_IGNORE);
    MPI_Request_get_status(nulls[0], &is_done, MPI_STATUS_IGNORE);
    MPI_Request_get_status(inactive[0], &is_done, MPI_STATUS_IGNORE);
    CHECK(is_done);
  }
}

static void end_some(MPI_Request requests[2]) {
  int is_done = 0;
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, requests);
    for (is_done = 0; !is_done;) MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
    MPI_Startall(2, requests);
    for (is_done = 0; !is_done;) MPI_Test(&requests[0], &is_done, MPI_STATUS_IGNORE);
    for (is_done = 0; !is_done;) MPI_Test(&requests[1], &is_done, MPI_STATUS_IGNORE);
  }
  MPI_Startall(2, requests);
  for (is_done = 0; !is_done;) MPI_Request_get_status(requests[0], &is_done, MPI_STATUS_IGNORE);
  for (int i = 0; i < kPolls; ++i) {
    MPI_Request_get_status(requests[0], &is_done, MPI_STATUS_IGNORE);
    CHECK(is_done);
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char* argv[]) {
  MPI_Init(&argc, &argv);
  MPI_Request requests[2];
  MPI_Recv_init(&g_in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Send_init(&g_out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
  poll_what_is_not_active(requests);
  end_some(requests);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Finalize();
  return 0;
}
