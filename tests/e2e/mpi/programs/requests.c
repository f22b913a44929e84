// Any number of ranks: rounds of random batches of requests to and from the neighbours, completed
// by every Wait and Test form in turn. Batches have up to 100 requests, more than fit on our stack.
// `requests ROUNDS`
#include "tests/e2e/mpi/programs/check.h"

enum { kMost = 100 };
static char g_out[kMost][64];
static char g_in[kMost][64];

static void complete(int form, int count, MPI_Request* requests) {
  static MPI_Status statuses[2 * kMost];
  int indices[2 * kMost];
  int left = count;
  int index;
  int flag = 0;
  while (left > 0) {
    int found = 0;
    switch (form) {
      case 0:
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        return;
      case 1:
        MPI_Waitall(count, requests, statuses);
        return;
      case 2:
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        found = index != MPI_UNDEFINED;
        break;
      case 3:
        MPI_Waitsome(count, requests, &found, indices, MPI_STATUSES_IGNORE);
        break;
      case 4:
        while (!flag) MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
        return;
      case 5:
        MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
        found = flag && index != MPI_UNDEFINED;
        break;
      case 6:
        MPI_Testsome(count, requests, &found, indices, statuses);
        break;
      case 7:
        MPI_Wait(&requests[--left], MPI_STATUS_IGNORE);
        break;
      case 8:
        MPI_Testany(1, &requests[left - 1], &index, &flag, statuses);
        found = flag && index == 0;
        break;
      default:
        MPI_Test(&requests[left - 1], &found, statuses);
        break;
    }
    left -= found;
  }
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 100;
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  const int ranks = world_count();
  MPI_Request requests[2 * kMost];
  for (int round = 0; round < rounds; ++round) {
    const int count = 1 + round * 7919 % kMost;  // alike on all ranks
    for (int i = 0; i < count; ++i) {
      const int source = i % 3 == 0 ? MPI_ANY_SOURCE : (rank + ranks - 1) % ranks;
      MPI_Irecv(g_in[i], 64, MPI_CHAR, source, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < count; ++i) {
      MPI_Isend(g_out[i], i % 64, MPI_CHAR, (rank + 1) % ranks, i, MPI_COMM_WORLD,
                &requests[count + i]);
    }
    complete(round % 10, 2 * count, requests);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
