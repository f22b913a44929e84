// Functions that later versions of the standard have removed or given another name, as long as the
// library has them.
#include "tests/e2e/mpi/programs/every/every.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int g_copies, g_deletes, g_errors;

static int copy(MPI_Comm comm, int key, void* state, void* value, void* out, int* flag) {
  CHECK(comm == W && key != MPI_KEYVAL_INVALID && state == &g_copies);
  ++g_copies;
  *(void**)out = value;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete (MPI_Comm comm, int key, void* value, void* state) {
  CHECK(comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID && value == &g_errors);
  CHECK(state == &g_copies);
  ++g_deletes;
  return MPI_SUCCESS;
}
static void on_error(MPI_Comm* comm, int* code, ...) {
  CHECK(*comm == W && *code != MPI_SUCCESS);
  ++g_errors;
}

static void old_attributes(void) {
  int key, flag = 0;
  int* found = NULL;
  MPI_Comm comm;
  OK(MPI_Keyval_create(copy, delete, &key, &g_copies));
  OK(MPI_Attr_put(W, key, &g_errors));
  OK(MPI_Attr_get(W, key, &found, &flag));
  CHECK(flag && found == &g_errors);
  OK(MPI_Comm_dup(W, &comm));
  OK(MPI_Comm_free(&comm));
  CHECK(g_copies == 1 && g_deletes == 1);
  OK(MPI_Attr_delete(W, key));
  CHECK(g_deletes == 2);
  OK(MPI_Keyval_free(&key));
}

static void old_error_handlers(void) {
  MPI_Errhandler handler, old;
  OK(MPI_Errhandler_create(on_error, &handler));
  OK(MPI_Errhandler_get(W, &old));
  OK(MPI_Errhandler_set(W, handler));
  CHECK(MPI_Bcast(NULL, -1, MPI_INT, 0, W) != MPI_SUCCESS && g_errors == 1);
  OK(MPI_Errhandler_set(W, old));
  OK(MPI_Errhandler_free(&handler));
}

static void old_types(void) {
  int lengths[2] = {1, 1}, numbers[2] = {0, 0};
  MPI_Aint distances[2] = {0, 8};
  MPI_Datatype types[2] = {MPI_INT, MPI_INT};
  MPI_Datatype type;
  MPI_Aint first = -1, second = -1, lower = -1, upper = -1, extent = -1;
  OK(MPI_Address(&numbers[0], &first));
  OK(MPI_Address(&numbers[1], &second));
  CHECK(second - first == sizeof(int));
  OK(MPI_Type_hindexed(2, lengths, distances, MPI_INT, &type));
  OK(MPI_Type_extent(type, &extent));
  OK(MPI_Type_lb(type, &lower));
  OK(MPI_Type_ub(type, &upper));
  CHECK(extent == 12 && lower == 0 && upper == 12);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_hvector(2, 1, 8, MPI_INT, &type));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_struct(2, lengths, distances, types, &type));
  OK(MPI_Type_free(&type));
}

void removed(void) {
  old_attributes();
  old_error_handlers();
  old_types();
}
