// A PMPI tool whose Fortran functions call the C functions by their MPI_ names.
#include <mpi.h>

void mpi_comm_rank_(MPI_Fint* comm, MPI_Fint* rank, MPI_Fint* error);
void mpi_comm_dup_(MPI_Fint* comm, MPI_Fint* copy, MPI_Fint* error);
void mpi_send_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to, MPI_Fint* tag,
               MPI_Fint* comm, MPI_Fint* error);

void mpi_comm_rank_(MPI_Fint* comm, MPI_Fint* rank, MPI_Fint* error) {
  *error = MPI_Comm_rank(MPI_Comm_f2c(*comm), rank);
}

void mpi_comm_dup_(MPI_Fint* comm, MPI_Fint* copy, MPI_Fint* error) {
  MPI_Comm made = MPI_COMM_NULL;
  *error = MPI_Comm_dup(MPI_Comm_f2c(*comm), &made);
  *copy = MPI_Comm_c2f(made);
}

void mpi_send_(void* buffer, MPI_Fint* count, MPI_Fint* type, MPI_Fint* to, MPI_Fint* tag,
               MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Send(buffer, *count, MPI_Type_f2c(*type), *to, *tag, MPI_Comm_f2c(*comm));
}
