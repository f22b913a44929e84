// Two ranks: requests that MPI_Request_get_status says are complete, and that are freed then, or
// waited for. Rank 1 receives t ints with tag t, from anybody: tag 1 freed, 2 waited for, 3
// persistent and freed, 4 freed where nobody asked before. Rank 0 sends; 5 is its own synchronous
// send that is freed. Both write one int each to FILE, freed. `told FILE`
#include "tests/e2e/mpi/programs/check.h"

enum { kMost = 8, kReady = 100 };

static void ask(MPI_Request request, MPI_Status* status) {
  int is_done = 0;
  while (!is_done) MPI_Request_get_status(request, &is_done, status);
}

static void receive(int tag) {
  int in[kMost];
  MPI_Request request;
  MPI_Status status;
  if (tag == 3) {
    MPI_Recv_init(in, kMost, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
  } else {
    MPI_Irecv(in, kMost, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &request);
  }
  MPI_Send(NULL, 0, MPI_INT, 0, kReady, MPI_COMM_WORLD);
  if (tag < 4) ask(request, tag == 1 ? MPI_STATUS_IGNORE : &status);
  if (tag == 4) MPI_Recv(NULL, 0, MPI_INT, 0, kReady, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (tag == 2) {
    MPI_Wait(&request, &status);
    CHECK(status.MPI_TAG == 2 && request == MPI_REQUEST_NULL);
  } else {
    MPI_Request_free(&request);
  }
}

static void send(int tag) {
  const int out[kMost] = {tag};
  MPI_Recv(NULL, 0, MPI_INT, 1, kReady, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(out, tag, MPI_INT, 1, tag, MPI_COMM_WORLD);
  if (tag == 4) MPI_Send(NULL, 0, MPI_INT, 1, kReady, MPI_COMM_WORLD);
}

static void send_own(void) {
  const int out[kMost] = {5};
  MPI_Request request;
  MPI_Issend(out, 5, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
  ask(request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

#ifdef OPEN_MPI  // MPICH never says so of a file's
static void write_one(const char* path) {
  MPI_File file;
  MPI_Request request;
  const int rank = world_rank();
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_iwrite_at(file, rank * (MPI_Offset)sizeof rank, &rank, 1, MPI_INT, &request);
  ask(request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  MPI_File_close(&file);
}
#endif

int main(int argc, char** argv) {
  int in[kMost];
  MPI_Init(&argc, &argv);
  CHECK(argc == 2);
  for (int tag = 1; tag <= 4; ++tag) (world_rank() == 0 ? send : receive)(tag);
  if (world_rank() == 0) send_own();
  if (world_rank() == 1) MPI_Recv(in, kMost, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifdef OPEN_MPI
  write_one(argv[1]);
#endif
  MPI_Finalize();
  return 0;
}
