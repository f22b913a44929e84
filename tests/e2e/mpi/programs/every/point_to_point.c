// Messages of one to four integers, from rank 0 to rank 1 where nothing else is said; the tag is
// the number of the message, its length that number modulo 4 and one.
#include "tests/e2e/mpi/programs/every/every.h"

enum { kMost = 4 };
static const int g_values[kMost] = {11, 12, 13, 14};
static int g_out[kMost] = {11, 12, 13, 14};
static int g_in[kMost];
static char g_buffer[1 << 16];

static Count length_of(int tag) { return tag % kMost + 1; }

static void check_message(int tag, const MPI_Status* status) {
  Count count = -1;
  OK(MPI_Get_count(status, MPI_INT, &count));
  CHECK(count == length_of(tag) && status->MPI_TAG == tag);
  CHECK(status->MPI_SOURCE == 0 || me == 0);
  CHECK(memcmp(g_in, g_values, (size_t)count * sizeof(int)) == 0);
  memset(g_in, 0, sizeof g_in);
}

static void receive(int tag) {
  MPI_Status status;
  OK(MPI_Recv(g_in, kMost, MPI_INT, 0, tag, W, &status));
  check_message(tag, &status);
}

static void finish_receive(int tag, MPI_Request* request) {
  MPI_Status status;
  OK(MPI_Wait(request, &status));
  CHECK(*request == MPI_REQUEST_NULL);
  check_message(tag, &status);
}

/// The receiver is waiting when this ends: ready sends may begin.
static void expect_ready(int tag, MPI_Request* request) {
  if (me == 1) OK(MPI_Irecv(g_in, kMost, MPI_INT, 0, tag, W, request));
  OK(MPI_Barrier(W));
}

static void blocking(void) {
  MPI_Request request;
  if (me == 0) {
    OK(MPI_Send(g_out, length_of(1), MPI_INT, 1, 1, W));
    OK(MPI_Ssend(g_out, length_of(2), MPI_INT, 1, 2, W));
    OK(MPI_Bsend(g_out, length_of(3), MPI_INT, 1, 3, W));
    OK(MPI_Send(g_out, 1, MPI_INT, MPI_PROC_NULL, 3, W));
  } else {
    for (int tag = 1; tag <= 3; ++tag) receive(tag);
  }
  expect_ready(4, &request);
  if (me == 0) OK(MPI_Rsend(g_out, length_of(4), MPI_INT, 1, 4, W));
  if (me == 1) finish_receive(4, &request);
}

static void nonblocking(void) {
  MPI_Request requests[4];
  expect_ready(5, &requests[0]);
  if (me == 1) {
    finish_receive(5, &requests[0]);
    for (int tag = 6; tag <= 8; ++tag) receive(tag);
    return;
  }
  OK(MPI_Irsend(g_out, length_of(5), MPI_INT, 1, 5, W, &requests[0]));
  OK(MPI_Isend(g_out, length_of(6), MPI_INT, 1, 6, W, &requests[1]));
  OK(MPI_Issend(g_out, length_of(7), MPI_INT, 1, 7, W, &requests[2]));
  OK(MPI_Ibsend(g_out, length_of(8), MPI_INT, 1, 8, W, &requests[3]));
  OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
}

static void exchanges(void) {
  MPI_Status status;
  OK(MPI_Sendrecv(g_out, length_of(9), MPI_INT, other, 9, g_in, kMost, MPI_INT, other, 9, W,
                  &status));
  check_message(9, &status);
  int both = me;
  OK(MPI_Sendrecv_replace(&both, 1, MPI_INT, other, 10, other, 10, W, &status));
  CHECK(both == other && status.MPI_SOURCE == other);
#if HAS_MPI_4
  MPI_Request request;
  OK(MPI_Isendrecv(g_out, length_of(11), MPI_INT, other, 11, g_in, kMost, MPI_INT, other, 11, W,
                   &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(memcmp(g_in, g_values, (size_t)length_of(11) * sizeof(int)) == 0);
  OK(MPI_Isendrecv_replace(&both, 1, MPI_INT, other, 12, other, 12, W, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(both == me);
#endif
}

static void probes(void) {
  MPI_Status status;
  MPI_Message message;
  MPI_Request request;
  int flag = 0;
  if (me == 0) {
    for (int tag = 13; tag <= 16; ++tag) OK(MPI_Send(g_out, length_of(tag), MPI_INT, 1, tag, W));
    return;
  }
  OK(MPI_Probe(0, 13, W, &status));
  receive(13);
  while (!flag) OK(MPI_Iprobe(MPI_ANY_SOURCE, 14, W, &flag, &status));
  CHECK(status.MPI_SOURCE == 0);
  receive(14);
  OK(MPI_Mprobe(0, 15, W, &message, &status));
  OK(MPI_Mrecv(g_in, kMost, MPI_INT, &message, &status));
  check_message(15, &status);
  for (flag = 0; !flag;) OK(MPI_Improbe(0, MPI_ANY_TAG, W, &flag, &message, &status));
  CHECK(status.MPI_TAG == 16);
  OK(MPI_Imrecv(g_in, kMost, MPI_INT, &message, &request));
  finish_receive(16, &request);
}

static void persistent(void) {
  MPI_Request requests[4];
  MPI_Status status;
  if (me == 0) {
    OK(MPI_Send_init(g_out, length_of(17), MPI_INT, 1, 17, W, &requests[0]));
    OK(MPI_Ssend_init(g_out, length_of(18), MPI_INT, 1, 18, W, &requests[1]));
    OK(MPI_Bsend_init(g_out, length_of(19), MPI_INT, 1, 19, W, &requests[2]));
    OK(MPI_Rsend_init(g_out, length_of(20), MPI_INT, 1, 20, W, &requests[3]));
  } else {
    OK(MPI_Recv_init(g_in, kMost, MPI_INT, 0, 20, W, &requests[0]));
  }
  for (int round = 0; round < 2; ++round) {
    if (me == 1) OK(MPI_Start(&requests[0]));
    OK(MPI_Barrier(W));
    if (me == 0) {
      OK(MPI_Startall(4, requests));
      OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    } else {
      OK(MPI_Wait(&requests[0], &status));
      check_message(20, &status);
      for (int tag = 17; tag <= 19; ++tag) receive(tag);
    }
  }
  for (int i = 0; i < (me == 0 ? 4 : 1); ++i) OK(MPI_Request_free(&requests[i]));
}

#if HAS_MPI_4
static void partitioned(void) {
  static double parts[6];
  int listed[2] = {4, 5};
  MPI_Request request;
  for (int i = 0; i < 6; ++i) parts[i] = me == 0 ? i : -1;
  if (me == 0) {
    OK(MPI_Psend_init(parts, 6, 1, MPI_DOUBLE, 1, 21, W, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Pready(0, request));
    OK(MPI_Pready_range(1, 3, request));
    OK(MPI_Pready_list(2, listed, request));
  } else {
    OK(MPI_Precv_init(parts, 6, 1, MPI_DOUBLE, 0, 21, W, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    for (int flag = 0; !flag;) OK(MPI_Parrived(request, 5, &flag));
  }
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int i = 0; i < 6; ++i) CHECK(parts[i] == i);
  OK(MPI_Request_free(&request));
}
#endif

void point_to_point(void) {
  void* detached = NULL;
  Count byte_count = 0;
  OK(MPI_Buffer_attach(g_buffer, sizeof g_buffer));
  blocking();
  nonblocking();
  exchanges();
  probes();
  persistent();
  OK(MPI_Buffer_detach(&detached, &byte_count));
  CHECK(detached == g_buffer && byte_count == sizeof g_buffer);
#if HAS_MPI_4
  partitioned();
#endif
}
