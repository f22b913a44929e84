// Says which of some functions of MPI are there: by weak references in its code and in its data, as
// dlsym() says, and by those of a library that it loads when MPI is initialized. One that the
// library lacks may be called where dlsym() gave its address before that: it fails.
#include <dlfcn.h>
#include <stdio.h>

#include "tests/e2e/mpi/programs/check.h"

// clang-format off
#define NAMES(X) \
  X(MPI_Send) X(MPI_Send_c) X(MPI_Status_get_tag) X(MPI_Request_get_status_all) \
  X(MPI_Session_init) X(MPI_Parrived) X(MPIX_Barrier_init)
// clang-format on
#define DECLARE(name) extern char weak_##name[] __asm__(#name) __attribute__((weak));
#define ADDRESS(name) weak_##name,
#define SAY(name) say(who, "code", #name, weak_##name);
#define SAY_AS_LOOKED_UP(name) say(who, "dlsym", #name, dlsym(RTLD_DEFAULT, #name));
#define NAME(name) #name,

NAMES(DECLARE)

static void say(const char* who, const char* where, const char* name, const void* address) {
  printf("%s: %s: %s is %s\n", who, where, name, address != NULL ? "there" : "not there");
}

void say_which(const char* who) {
  static const char* const kNames[] = {NAMES(NAME)};
  static const void* volatile addresses[] = {NAMES(ADDRESS)};
  NAMES(SAY)
  NAMES(SAY_AS_LOOKED_UP)
  for (unsigned i = 0; i < sizeof kNames / sizeof kNames[0]; ++i)
    say(who, "data", kNames[i], addresses[i]);
}

#ifndef LATER
typedef int (*Poll)(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);

int main(int argc, char** argv) {
  const Poll early = (Poll)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
  MPI_Init(&argc, &argv);
  say_which("program");
  const int is_there = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all") != NULL;
  for (int i = 0; i < 3 && early != NULL && !is_there; ++i) {
    int flag = 0;
    CHECK(early(0, NULL, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS && flag == 0);
  }
  void* library = dlopen(argv[1], RTLD_NOW);
  CHECK(library != NULL);
  void (*say_which_later)(const char*) = (void (*)(const char*))dlsym(library, "say_which");
  CHECK(say_which_later != NULL);
  say_which_later("library");
  MPI_Finalize();
  return 0;
}
#endif
