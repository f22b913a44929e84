// Two ranks. Rank 0 sends from callbacks that MPI calls inside other calls: of an attribute that is
// deleted with its communicator, as its last word, and of an error handler, which calls the
// function that failed. Rank 1 receives both as usual.
#include "tests/e2e/mpi/programs/check.h"

static int g_word;

static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  return MPI_Send(&g_word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
}

static void handle_error(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  MPI_Send(&g_word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
}

static void send_inside(void) {
  MPI_Comm copy;
  MPI_Errhandler handler;
  int key;
  MPI_Comm_dup(MPI_COMM_SELF, &copy);
  MPI_Comm_create_errhandler(handle_error, &handler);
  MPI_Comm_set_errhandler(copy, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, NULL);
  MPI_Comm_set_attr(copy, key, NULL);
  CHECK(MPI_Send(&g_word, 1, MPI_INT, 99, 0, copy) != MPI_SUCCESS);
  MPI_Comm_free(&copy);
  MPI_Comm_free_keyval(&key);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (world_rank() == 0) {
    send_inside();
  } else {
    MPI_Recv(&g_word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&g_word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
