// A program in C without MPI_Init, over the same library: what it sends to itself by MPI_Isendrecv.
#include <stddef.h>

extern struct Object ompi_mpi_byte;
int MPI_Session_init(void* info, void* handler, void** session);
int MPI_Session_finalize(void** session);
int MPI_Group_from_session_pset(void* session, const char* name, void** group);
int MPI_Comm_create_from_group(void* group, const char* tag, void* info, void* handler,
                               void** comm);
int MPI_Isendrecv(const void* out, int count, void* type, int to, int tag, void* in, int room,
                  void* in_type, int from, int in_tag, void* comm, void** request);
int MPI_Wait(void** request, void* status);

int main(void) {
  void *session, *group, *comm, *request;
  const char out[5] = "five";
  char in[8];
  MPI_Session_init(NULL, NULL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  if (MPI_Comm_create_from_group(group, "tag", NULL, NULL, &comm) != 0) return 1;
  MPI_Isendrecv(out, 5, &ompi_mpi_byte, 0, 3, in, 8, &ompi_mpi_byte, 0, 3, comm, &request);
  MPI_Wait(&request, NULL);
  MPI_Session_finalize(&session);
  return in[0] != out[0];
}
