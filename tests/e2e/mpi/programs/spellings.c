// A send to itself and a barrier under each name that a Fortran compiler may give them.
#include <mpi.h>

#define EACH(DO, name, NAME) DO(name##_) DO(name##__) DO(name) DO(NAME)

#define DECLARE_SEND(name) \
  void name(void* buffer, int* count, int* type, int* dest, int* tag, int* comm, int* error);
#define DECLARE_BARRIER(name) void name(int* comm, int* error);
EACH(DECLARE_SEND, mpi_send, MPI_SEND)
EACH(DECLARE_BARRIER, mpi_barrier, MPI_BARRIER)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int comm = MPI_Comm_c2f(MPI_COMM_SELF), type = MPI_Type_c2f(MPI_INT);
  int value = 7, got = 0, one = 1, me = 0, tag = 0, error = 0, error_count = 0;
#define SEND(name)                                                  \
  {                                                                 \
    MPI_Request request;                                            \
    MPI_Irecv(&got, 1, MPI_INT, 0, ++tag, MPI_COMM_SELF, &request); \
    name(&value, &one, &type, &me, &tag, &comm, &error);            \
    MPI_Wait(&request, MPI_STATUS_IGNORE);                          \
    error_count += error != MPI_SUCCESS || got != value++;          \
  }
#define BARRIER(name)  \
  name(&comm, &error); \
  error_count += error != MPI_SUCCESS;
  EACH(SEND, mpi_send, MPI_SEND)
  EACH(BARRIER, mpi_barrier, MPI_BARRIER)
  MPI_Finalize();
  return error_count;
}
