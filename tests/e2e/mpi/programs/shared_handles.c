// Two ranks. Rank 0 begins a put and a send that are complete at once, so that Open MPI gives both
// the same handle. The put's is waited for in its epoch, the send's when the window is gone.
#include "tests/e2e/mpi/programs/check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Win window;
  MPI_Request put, send;
  int* memory;
  int word = 1;
  MPI_Win_allocate_shared(sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                          &window);
  MPI_Win_lock_all(0, window);
  if (world_rank() == 0) {
    MPI_Rput(&word, 1, MPI_INT, 1, 0, 1, MPI_INT, window, &put);
    MPI_Isend(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &send);
    printf("%s\n", put == send ? "shared" : "two");
    MPI_Wait(&put, MPI_STATUS_IGNORE);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (world_rank() == 0) {
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
