// Stands for an MPI library that nobody knows: one process, handles and constants like those of no
// other. Each function says by its result whether it was given what the program passed.
#include "tests/e2e/mpi/programs/unknown_library.h"

#define FORWARDED(condition) return (condition) ? 0 : 99
#define FUNCTION(name, ...)                                                \
  int PMPI_##name(__VA_ARGS__);                                            \
  int MPI_##name(__VA_ARGS__) __attribute__((weak, alias("PMPI_" #name))); \
  int PMPI_##name(__VA_ARGS__)

FUNCTION(Init, int* argc, char*** argv) { FORWARDED(argc != 0 && argv != 0); }
FUNCTION(Finalize, void) { return 0; }
FUNCTION(Comm_rank, MPI_Comm comm, int* rank) {
  *rank = 0;
  FORWARDED(comm == MPI_COMM_WORLD);
}
FUNCTION(Comm_dup, MPI_Comm comm, MPI_Comm* copy) {
  *copy = (MPI_Comm)0x999;
  FORWARDED(comm == MPI_COMM_WORLD);
}
FUNCTION(Comm_free, MPI_Comm* comm) { FORWARDED(*comm == (MPI_Comm)0x999); }
FUNCTION(Barrier, MPI_Comm comm) { FORWARDED(comm == MPI_COMM_WORLD); }
FUNCTION(Isend, const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
         MPI_Request* request) {
  *request = (MPI_Request)0x77;
  FORWARDED(buffer != 0 && count == 3 && type == MPI_INT && to == 0 && tag == 5 &&
            comm == MPI_COMM_WORLD);
}
FUNCTION(Recv, void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
         MPI_Status* status) {
  FORWARDED(buffer != 0 && count == 4 && type == MPI_INT && from == MPI_ANY_SOURCE && tag == 5 &&
            comm == MPI_COMM_WORLD && status == MPI_STATUS_IGNORE);
}
FUNCTION(Waitall, int count, MPI_Request* requests, MPI_Status* statuses) {
  FORWARDED(count == 1 && *requests == (MPI_Request)0x77 && statuses == MPI_STATUS_IGNORE);
}
