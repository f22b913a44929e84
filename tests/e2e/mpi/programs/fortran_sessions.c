// What a Fortran program of mpi_f08 without MPI_Init calls, as its compiler would: two sessions,
// the first of which ends first, and a communicator of the second. Behind each INTEGER is another.
#include <stddef.h>

void mpi_session_init_f08_(int* info, int* handler, int* session, int* error);
void mpi_session_finalize_f08_(int* session, int* error);
void mpi_group_from_session_pset_f08_(int* session, const char* name, int* group, int* error,
                                      size_t length);
void mpi_comm_create_from_group_f08_(int* group, const char* tag, int* info, int* handler,
                                     int* comm, int* error, size_t length);
void mpi_barrier_f08_(int* comm, int* error);

int main(void) {
  int info = 0;
  int handler = 2;
  int sessions[3] = {-1, -1, 0x7fffffff};
  int group = -1;
  int comm = -1;
  int errors[2] = {-1, -1};
  mpi_session_init_f08_(&info, &handler, &sessions[0], &errors[0]);
  mpi_session_init_f08_(&info, &handler, &sessions[1], NULL);
  if (errors[0] != 0 || sessions[0] == sessions[1] || sessions[2] != 0x7fffffff) return 1;
  mpi_session_finalize_f08_(&sessions[0], NULL);
  mpi_group_from_session_pset_f08_(&sessions[1], "mpi://WORLD", &group, &errors[1], 11);
  mpi_comm_create_from_group_f08_(&group, "tag", &info, &handler, &comm, NULL, 3);
  mpi_barrier_f08_(&comm, &errors[1]);
  mpi_session_finalize_f08_(&sessions[1], &errors[1]);
  return errors[1];
}
