// Every way to wait for requests and to ask about them; a cancelled and a freed one; the memory of
// a status; requests of the program's own.
#include "tests/e2e/mpi/programs/every/every.h"

enum { kRequests = 3 };
static int g_in[kRequests];
static MPI_Request g_requests[kRequests];
static MPI_Status g_statuses[kRequests];

/// Three messages from the other rank to this one, which are under way.
static void begin(void) {
  static int out[kRequests];
  for (int i = 0; i < kRequests; ++i) {
    g_in[i] = -1;
    OK(MPI_Irecv(&g_in[i], 1, MPI_INT, other, i, W, &g_requests[i]));
  }
  for (int i = 0; i < kRequests; ++i) {
    out[i] = 10 * me + i;
    OK(MPI_Send(&out[i], 1, MPI_INT, other, i, W));
  }
}
static void check_one(int i, const MPI_Status* status) {
  CHECK(g_in[i] == 10 * other + i && g_requests[i] == MPI_REQUEST_NULL);
  CHECK(status->MPI_TAG == i && status->MPI_SOURCE == other);
}
static void check_all(void) {
  for (int i = 0; i < kRequests; ++i) check_one(i, &g_statuses[i]);
}

static void waits(void) {
  int index, count, indices[kRequests];
  begin();
  for (int i = 0; i < kRequests; ++i) {
    OK(MPI_Wait(&g_requests[i], &g_statuses[i]));
    check_one(i, &g_statuses[i]);
  }
  begin();
  OK(MPI_Waitall(kRequests, g_requests, g_statuses));
  check_all();
  begin();
  for (int i = 0; i < kRequests; ++i) {
    OK(MPI_Waitany(kRequests, g_requests, &index, &g_statuses[0]));
    check_one(index, &g_statuses[0]);
  }
  OK(MPI_Waitany(kRequests, g_requests, &index, MPI_STATUS_IGNORE));
  CHECK(index == MPI_UNDEFINED);
  begin();
  for (int done = 0; done < kRequests; done += count) {
    OK(MPI_Waitsome(kRequests, g_requests, &count, indices, g_statuses));
    for (int i = 0; i < count; ++i) check_one(indices[i], &g_statuses[i]);
  }
}

static void tests(void) {
  int flag, index, count, indices[kRequests];
  begin();
  for (int i = 0; i < kRequests; ++i) {
    for (flag = 0; !flag;) OK(MPI_Test(&g_requests[i], &flag, &g_statuses[i]));
    check_one(i, &g_statuses[i]);
  }
  begin();
  for (flag = 0; !flag;) OK(MPI_Testall(kRequests, g_requests, &flag, g_statuses));
  check_all();
  begin();
  for (int done = 0; done < kRequests;) {
    OK(MPI_Testany(kRequests, g_requests, &index, &flag, &g_statuses[0]));
    if (flag) check_one(index, &g_statuses[0]);
    done += flag;
  }
  begin();
  for (int done = 0; done < kRequests; done += count) {
    OK(MPI_Testsome(kRequests, g_requests, &count, indices, g_statuses));
    for (int i = 0; i < count; ++i) check_one(indices[i], &g_statuses[i]);
  }
  begin();
  for (flag = 0; !flag;) OK(MPI_Request_get_status(g_requests[0], &flag, &g_statuses[0]));
  CHECK(g_requests[0] != MPI_REQUEST_NULL && g_statuses[0].MPI_TAG == 0);
  OK(MPI_Waitall(kRequests, g_requests, MPI_STATUSES_IGNORE));
}

static void ends(void) {
  int flag = 0;
  OK(MPI_Irecv(g_in, 1, MPI_INT, other, 99, W, &g_requests[0]));
  OK(MPI_Cancel(&g_requests[0]));
  OK(MPI_Wait(&g_requests[0], &g_statuses[0]));
  OK(MPI_Test_cancelled(&g_statuses[0], &flag));
  CHECK(flag);
  OK(MPI_Irecv(g_in, 1, MPI_INT, other, 98, W, &g_requests[0]));
  OK(MPI_Request_free(&g_requests[0]));
  CHECK(g_requests[0] == MPI_REQUEST_NULL);
  OK(MPI_Send(&me, 1, MPI_INT, other, 98, W));
  OK(MPI_Barrier(W));
}

static void statuses(void) {
  MPI_Status status;
  MPI_Count many = 0;
  Count count = 0;
  int flag = 0;
  memset(&status, 0, sizeof status);
  OK(MPI_Status_set_elements(&status, MPI_INT, 6));
  OK(MPI_Get_elements(&status, MPI_INT, &count));
  CHECK(count == 6);
  OK(MPI_Status_set_elements_x(&status, MPI_INT, 7));
  OK(MPI_Get_elements_x(&status, MPI_INT, &many));
  CHECK(many == 7);
  OK(MPI_Status_set_cancelled(&status, 1));
  OK(MPI_Test_cancelled(&status, &flag));
  CHECK(flag);
}

static int g_queries, g_frees, g_cancels;
static int on_query(void* state, MPI_Status* status) {
  CHECK(state == &g_queries);
  ++g_queries;
  status->MPI_SOURCE = 5;
  status->MPI_TAG = 6;
  MPI_Status_set_cancelled(status, g_cancels);
  return MPI_Status_set_elements(status, MPI_INT, 3);
}
static int on_free(void* state) {
  CHECK(state == &g_queries);
  ++g_frees;
  return MPI_SUCCESS;
}
static int on_cancel(void* state, int is_complete) {
  CHECK(state == &g_queries && !is_complete);
  ++g_cancels;
  return MPI_SUCCESS;
}

/// One of the program's own that is completed, one that is cancelled first.
static void own_requests(void) {
  for (int round = 0; round < 2; ++round) {
    int flag = 1;
    MPI_Status status;
    MPI_Request request;
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, &g_queries, &request));
    OK(MPI_Test(&request, &flag, &status));
    CHECK(!flag && g_queries == round);
    if (round == 1) OK(MPI_Cancel(&request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    CHECK(g_queries == round + 1 && g_frees == round + 1 && g_cancels == round);
    CHECK(status.MPI_SOURCE == 5 && status.MPI_TAG == 6);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag == round);
  }
}

void completion(void) {
  waits();
  tests();
  ends();
  statuses();
  own_requests();
}
