// A program with an MPI tool linked into it, two ranks: what it calls by MPI_ names ends in the
// tool, which goes on by PMPI_ names. With ALL the tool has every function that the program calls.
#include "tests/e2e/mpi/programs/check.h"

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return PMPI_Send(buffer, count, type, to, tag, comm);
}
#ifdef ALL
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int MPI_Finalize(void) { return PMPI_Finalize(); }
int MPI_Comm_rank(MPI_Comm comm, int* rank) { return PMPI_Comm_rank(comm, rank); }
int MPI_Barrier(MPI_Comm comm) { return PMPI_Barrier(comm); }
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
  return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}
#endif

int main(int argc, char** argv) {
  int (*volatile barrier)(MPI_Comm) = MPI_Barrier;  // in a program of fixed address it stands there
  MPI_Init(&argc, &argv);
  int value = 5;
  const int rank = world_rank();
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(value == 5 && barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  MPI_Finalize();
  return 0;
}
