// Two ranks. Rank 0 starts persistent buffered sends again and again, which are complete at once
// but not yet sent, for rank 1 receives nothing before the end: Open MPI gives such a request
// another handle whenever it is started again. Message TAG is sent by
//   1  MPI_Start       2, 3  MPI_Startall       4  MPI_Startall of kMany
//   5  MPI_Start, the second of three while the recording is paused
//   6  MPI_Startall alike
// Prints how many handles were changed.
#include "tests/e2e/mpi/programs/check.h"

enum { kTimes = 5, kMany = 40, kBytes = 70000, kFewerBytes = 10000, kRoom = 32 << 20, kEnd = 100 };
static char g_out[kBytes];
static char g_in[kBytes];
static int g_changed_count;

static MPI_Request prepare(int tag, int bytes) {
  MPI_Request request;
  MPI_Bsend_init(g_out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
  return request;
}

static void start(MPI_Request* request) {
  const MPI_Request before = *request;
  MPI_Start(request);
  g_changed_count += before != *request;
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void start_all(int count, MPI_Request* requests) {
  MPI_Request before[kMany];
  MPI_Status statuses[kMany];
  memcpy(before, requests, (size_t)count * sizeof *before);
  MPI_Startall(count, requests);
  for (int i = 0; i < count; ++i) g_changed_count += before[i] != requests[i];
  MPI_Waitall(count, requests, statuses);
}

static void send_all(void) {
  MPI_Request requests[kMany];
  requests[0] = prepare(1, kBytes);
  for (int i = 0; i < kTimes; ++i) start(&requests[0]);
  MPI_Request_free(&requests[0]);
  for (int i = 0; i < 2; ++i) requests[i] = prepare(2 + i, kBytes);
  for (int i = 0; i < kTimes; ++i) start_all(2, requests);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  for (int i = 0; i < kMany; ++i) requests[i] = prepare(4, kFewerBytes);
  for (int i = 0; i < kTimes; ++i) start_all(kMany, requests);
  for (int i = 0; i < kMany; ++i) MPI_Request_free(&requests[i]);
  for (int i = 0; i < 2; ++i) requests[i] = prepare(5 + i, kBytes);
  for (int i = 0; i < 3; ++i) {
    if (i == 1) MPI_Pcontrol(0);
    start(&requests[0]);
    start_all(1, &requests[1]);
    if (i == 1) MPI_Pcontrol(1);
  }
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
}

static void receive(int tag, int count) {
  for (int i = 0; i < count; ++i)
    MPI_Recv(g_in, kBytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK(world_count() == 2);
  if (world_rank() == 0) {
    int bytes;
    char* room = malloc(kRoom);
    MPI_Buffer_attach(room, kRoom);
    send_all();
    MPI_Send(NULL, 0, MPI_BYTE, 1, kEnd, MPI_COMM_WORLD);
    MPI_Buffer_detach(&room, &bytes);
    free(room);
    printf("%d handles were changed\n", g_changed_count);
  } else {
    receive(kEnd, 1);
    receive(1, kTimes);
    receive(2, kTimes);
    receive(3, kTimes);
    receive(4, kTimes * kMany);
    receive(5, 3);
    receive(6, 3);
  }
  MPI_Finalize();
  return 0;
}
