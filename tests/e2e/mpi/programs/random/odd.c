/// Steps of requests that move nothing: cancelled, from and to nobody, not started, null; those
/// that are started again and again; and calls that MPI refuses.
#include "tests/e2e/mpi/programs/random/random.h"

enum { kNoTag = 77 };  ///< nobody sends with it

static void cancel_receive(State* s, const Comm* c) {
  MPI_Request request;
  MPI_Status status;
  int is_complete = 0, is_cancelled;
  const int source = chance(&s->own, 50) ? MPI_ANY_SOURCE : 0;
  DO(Irecv, buffer(s, 8), 8, MPI_BYTE, source, kNoTag, c->handle, &request);
  if (chance(&s->own, 50)) DO(Test, &request, &is_complete, MPI_STATUS_IGNORE);
  DO(Cancel, &request);
  if (chance(&s->own, 30)) {
    DO(Request_free, &request);
    tell("unmatched 1");  // nobody knows whether it has got something
    return;
  }
  DO(Wait, &request, &status);
  DO(Test_cancelled, &status, &is_cancelled);
  CHECK(is_cancelled);
}

static void cancel_persistent(State* s, const Comm* c) {
  MPI_Request* request = new_request(s, true);
  MPI_Status status;
  DO(Recv_init, buffer(s, 8), 8, MPI_BYTE, 0, kNoTag, c->handle, request);
  for (int i = below(&s->own, 3); i > 0; --i) {
    DO(Start, request);
    DO(Cancel, request);
    DO(Wait, request, &status);
  }
}

static void use_nobody(State* s, const Comm* c) {
  char* data = buffer(s, 16);
  MPI_Status status;
  MPI_Message message;
  int is_there;
  DO(Send, data, 8, MPI_BYTE, MPI_PROC_NULL, 1, c->handle);
  DO(Recv, data, 8, MPI_BYTE, MPI_PROC_NULL, 1, c->handle, &status);
  DO(Isend, data, 8, MPI_BYTE, MPI_PROC_NULL, 1, c->handle, new_request(s, false));
  DO(Irecv, data, 8, MPI_BYTE, MPI_PROC_NULL, 1, c->handle, new_request(s, false));
  DO(Sendrecv, data, 1, MPI_INT, MPI_PROC_NULL, 1, data + 8, 1, MPI_INT, MPI_PROC_NULL, 1,
     c->handle, MPI_STATUS_IGNORE);
  DO(Probe, MPI_PROC_NULL, 1, c->handle, &status);
  DO(Improbe, MPI_PROC_NULL, 1, c->handle, &is_there, &message, &status);
  DO(Mrecv, data, 8, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  MPI_Request* request = new_request(s, true);
  DO(Send_init, data, 8, MPI_BYTE, MPI_PROC_NULL, 1, c->handle, request);
  DO(Startall, 1, request);
  activate(s, index_of(s, request));
}

static void use_null_requests(void) {
  MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  int index, is_complete, indices[3];
  DO(Waitall, 3, none, statuses);
  DO(Waitany, 3, none, &index, statuses);
  DO(Testsome, 3, none, &index, indices, MPI_STATUSES_IGNORE);
  DO(Testall, 0, none, &is_complete, MPI_STATUSES_IGNORE);
  DO(Wait, none, MPI_STATUS_IGNORE);
}

static void leave_unstarted(State* s, const Comm* c) {
  MPI_Request* request = new_request(s, true);
  DO(Send_init, buffer(s, 8), 8, MPI_BYTE, 0, kNoTag, c->handle, request);
  if (chance(&s->own, 50)) DO(Wait, request, MPI_STATUS_IGNORE);
  int is_complete;
  if (chance(&s->own, 50)) DO(Test, request, &is_complete, MPI_STATUS_IGNORE);
}

/// A ring of persistent requests, started several times: some at once, some one by one.
static void start_again(State* s, const Comm* c, int rounds, int count) {
  enum { kMost = 4 };
  const int size = c->size[0], next = (c->rank + 1) % size, last = (c->rank + size - 1) % size;
  MPI_Request* first = NULL;
  for (int i = 0; i < count; ++i) {
    MPI_Request* in = new_request(s, true);
    if (first == NULL) first = in;
    DO(Recv_init, buffer(s, 4000), 4000, MPI_BYTE, last, i % 2, c->handle, in);
    MPI_Request* out = new_request(s, true);
    DO(Ssend_init, buffer(s, 4000), 1000 * i, MPI_BYTE, next, i % 2, c->handle, out);
  }
  for (int round = 0; round < rounds; ++round) {
    if (chance(&s->own, 50)) {
      DO(Startall, 2 * count, first);
    } else {
      for (int i = 0; i < 2 * count; ++i) DO(Start, first + i);
    }
    for (int i = 0; i < 2 * count; ++i) activate(s, index_of(s, first) + i);
    for (int i = 0; i < count; ++i)
      tell("send %d %d %d %d %d", c->id, me, c->world[0][next], i % 2, 1000 * i);
    drain(s, 0);
  }
}

void step_odd_requests(State* s) {
  Comm* c = random_comm(s, is_within_one_group);
  const int way = below(&s->plan, 6), rounds = 1 + below(&s->plan, 3),
            count = 1 + below(&s->plan, 4);
  if (!is_member(c)) return;
  if (way == 5) {
    drain(s, 0);
    PMPI_Barrier(c->handle);
    start_again(s, c, rounds, count);
    return;
  }
  if (way == 0) cancel_receive(s, c);
  if (way == 1) cancel_persistent(s, c);
  if (way == 2) use_nobody(s, c);
  if (way == 3) use_null_requests();
  if (way == 4) leave_unstarted(s, c);
}

void step_refused(State* s) {
  Comm* c = random_comm(s, NULL);
  const int way = below(&s->plan, 6);
  if (!is_member(c)) return;
  char data[16] = {0};
  MPI_Request request;
  if (way == 0) REFUSED(Send, data, 1, MPI_BYTE, 99, 1, c->handle);
  if (way == 1) REFUSED(Irecv, data, 1, MPI_BYTE, 99, 1, c->handle, &request);
  if (way == 2) REFUSED(Isend, data, -1, MPI_BYTE, 0, 1, c->handle, &request);
  if (way == 3)
    REFUSED(Sendrecv, data, 1, MPI_BYTE, 99, 1, data, 1, MPI_BYTE, 0, 1, c->handle,
            MPI_STATUS_IGNORE);
  if (way == 3) tell("unmatched 1");  // nobody knows what it has exchanged
  if (way == 4) REFUSED(Send_init, data, 1, MPI_BYTE, 0, -5, c->handle, &request);
  if (way == 5) REFUSED(Probe, 99, 1, c->handle, MPI_STATUS_IGNORE);
}
