// Matched probes that take nothing out, then ten messages of which each comes late; two ranks,
// `matched_probes CASE MS`.
//
//   empty    rank 1 looks 1000 times for a message that nobody sends
//   polled   rank 1 looks for one that comes late, and receives it
//   nobody   rank 1 probes for one of MPI_PROC_NULL, and receives it
#include <time.h>

#include "tests/e2e/mpi/programs/check.h"

#define W MPI_COMM_WORLD

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void probe(const char* wanted) {
  MPI_Message message = MPI_MESSAGE_NULL;
  int data = 0;
  int is_there = 0;
  if (strcmp(wanted, "empty") == 0) {
    for (int i = 0; i < 1000; ++i) MPI_Improbe(0, 1, W, &is_there, &message, MPI_STATUS_IGNORE);
    CHECK(!is_there);
    return;
  }
  if (strcmp(wanted, "nobody") == 0) {
    MPI_Mprobe(MPI_PROC_NULL, 1, W, &message, MPI_STATUS_IGNORE);
  } else {
    while (!is_there) MPI_Improbe(0, 2, W, &is_there, &message, MPI_STATUS_IGNORE);
  }
  MPI_Mrecv(&data, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const long ms = atol(argv[2]);
  int data = 0;
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  CHECK(world_count() == 2);
  MPI_Barrier(W);
  if (rank == 1) probe(argv[1]);
  if (rank == 0 && strcmp(argv[1], "polled") == 0) {
    sleep_ms(ms);
    MPI_Send(&data, 1, MPI_INT, 1, 2, W);
  }
  for (int i = 0; i < 10; ++i) {
    if (rank == 0) {
      sleep_ms(ms);
      MPI_Send(&data, 1, MPI_INT, 1, 3, W);
    } else {
      MPI_Recv(&data, 1, MPI_INT, 0, 3, W, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(W);
  }
  MPI_Finalize();
  return 0;
}
