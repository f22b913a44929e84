// A program of an MPI library that nobody knows (unknown_library.c). Exits with 0 when every call
// reached the library as it was made.
#include "tests/e2e/mpi/programs/unknown_library.h"

int main(int argc, char** argv) {
  int failures = MPI_Init(&argc, &argv);
  for (int round = 0; round < 1000; ++round) {
    int values[4] = {0};
    int rank;
    MPI_Comm copy;
    MPI_Request request;
    failures += MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    failures += MPI_Isend(values, 3, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    failures += MPI_Recv(values, 4, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    failures += MPI_Waitall(1, &request, MPI_STATUS_IGNORE);
    failures += MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    failures += MPI_Comm_free(&copy);
    failures += MPI_Barrier(MPI_COMM_WORLD);
  }
  failures += MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
