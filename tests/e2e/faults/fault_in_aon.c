// Dies in AON's own code: MPI_Waitall gets an array that cannot be read, and AON's wrapper reads it
// before the library does. Without AON it dies in the library.
#include <mpi.h>
#include <stdint.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1 && strcmp(argv[1], "die") == 0) {
    MPI_Request* volatile nowhere = (MPI_Request*)(uintptr_t)8;
    MPI_Waitall(1, nowhere, MPI_STATUSES_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
