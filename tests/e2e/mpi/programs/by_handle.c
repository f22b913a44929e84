// A program that looks MPI's functions up in the library itself, as Julia does, so that they do not
// end in what was loaded before it. `by_handle all`; or `some`, which calls one of them by its
// name; or `bare`, of which nothing is recorded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "core/include/aon/annotate.h"
#include "tests/e2e/mpi/programs/check.h"

static void* library_of(void* function) {
  Dl_info file;
  CHECK(dladdr(function, &file) != 0);
  void* library = dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  CHECK(library != NULL);
  return library;
}

int main(int argc, char** argv) {
  void* library = library_of((void*)&PMPI_Init);
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
  int (*barrier)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(library, "MPI_Barrier");
  int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
  init(&argc, &argv);
  const int is_bare = strcmp(argv[1], "bare") == 0;
  if (!is_bare) AON_REGION_BEGIN("step");
  barrier(MPI_COMM_WORLD);
  if (strcmp(argv[1], "some") == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (!is_bare) AON_REGION_END("step");
  finalize();
  return 0;
}
