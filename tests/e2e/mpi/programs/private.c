// A module that brings its MPI library along, as a Python extension does: dlopen()ed RTLD_LOCAL,
// so that nobody else sees the library's symbols.
#include <mpi.h>
#include <stddef.h>

void run(void) {
  char out[5] = "";
  char in[5];
  int rank;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Sendrecv(out, 5, MPI_CHAR, 1 - rank, 3, in, 5, MPI_CHAR, 1 - rank, 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
