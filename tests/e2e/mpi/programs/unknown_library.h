/// What an <mpi.h> says, with values that no other library has.
#pragma once

typedef struct UnknownComm* MPI_Comm;
typedef struct UnknownType* MPI_Datatype;
typedef struct UnknownRequest* MPI_Request;
typedef struct UnknownStatus MPI_Status;
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_INT ((MPI_Datatype)0x248)
#define MPI_STATUS_IGNORE ((MPI_Status*)0x5)  // nobody may look at it
enum { MPI_ANY_SOURCE = -11 };

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status);
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses);
