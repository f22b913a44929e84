// Handles and statuses of C as Fortran has them, and back.
#include "tests/e2e/mpi/programs/every/every.h"

#define THERE_AND_BACK(type, handle) CHECK(MPI_##type##_f2c(MPI_##type##_c2f(handle)) == (handle))

void handles(void) {
  MPI_Group group;
  MPI_Info info;
  MPI_Win win;
  MPI_Status status, back;
  MPI_Fint words[sizeof(MPI_Status) / sizeof(MPI_Fint) + 8];
  OK(MPI_Comm_group(W, &group));
  OK(MPI_Info_create(&info));
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, W, &win));
  THERE_AND_BACK(Comm, W);
  THERE_AND_BACK(Type, MPI_DOUBLE);
  THERE_AND_BACK(Group, group);
  THERE_AND_BACK(Info, info);
  THERE_AND_BACK(Win, win);
  THERE_AND_BACK(Op, MPI_SUM);
  THERE_AND_BACK(Request, MPI_REQUEST_NULL);
  THERE_AND_BACK(Message, MPI_MESSAGE_NULL);
  THERE_AND_BACK(Errhandler, MPI_ERRORS_RETURN);
  THERE_AND_BACK(File, MPI_FILE_NULL);
  OK(MPI_Win_free(&win));
  OK(MPI_Info_free(&info));
  OK(MPI_Group_free(&group));
  OK(MPI_Sendrecv(&me, 1, MPI_INT, other, 4, words, 1, MPI_INT, other, 4, W, &status));
  OK(MPI_Status_c2f(&status, words));
  OK(MPI_Status_f2c(words, &back));
  CHECK(back.MPI_SOURCE == other && back.MPI_TAG == 4);
}
