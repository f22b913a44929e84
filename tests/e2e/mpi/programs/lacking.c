// Says which of some functions of MPI are there: what dlsym() says, and what the weak references
// of a library do, in its code and in its data, that is loaded when the program runs.
//
//   lacking LIBRARY                   program and library are linked to MPI
//   python3 lacking.py LIBRARY        only the library is
#include <dlfcn.h>
#include <stdio.h>

#include "tests/e2e/mpi/programs/check.h"

// clang-format off
#define NAMES(X) \
  X(MPI_Send) X(MPI_Send_c) X(MPI_Status_get_tag) X(MPI_Request_get_status_all) X(MPI_Comm_c2f) \
  X(MPI_Session_init) X(MPI_Parrived) X(MPIX_Barrier_init)
// clang-format on
#define DECLARE(name) extern char weak_##name[] __asm__(#name) __attribute__((weak));
#define ADDRESS(name) weak_##name,
#define SAY(name) say(who, "code", #name, weak_##name);
#define SAY_AS_LOOKED_UP(name) say(who, "dlsym", #name, dlsym(RTLD_DEFAULT, #name));
#define NAME(name) #name,

static void say(const char* who, const char* where, const char* name, const void* address) {
  printf("%s: %s: %s is %s\n", who, where, name, address != NULL ? "there" : "not there");
}

#ifdef LATER
NAMES(DECLARE)

void say_which(const char* who) {
  static const char* const kNames[] = {NAMES(NAME)};
  static const void* volatile addresses[] = {NAMES(ADDRESS)};
  NAMES(SAY)
  for (unsigned i = 0; i < sizeof kNames / sizeof kNames[0]; ++i)
    say(who, "data", kNames[i], addresses[i]);
  fflush(stdout);
}

typedef int (*SendLarge)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);

/// Sends itself three messages, by the function with a large count where that is there.
void talk(void) {
  MPI_Init(NULL, NULL);
  for (int i = 0; i < 3; ++i) {
    MPI_Request request;
    int out = i, in = -1;
    CHECK(MPI_Irecv(&in, 1, MPI_INT, 0, i, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    const int status = weak_MPI_Send_c != NULL ? ((SendLarge)(void*)weak_MPI_Send_c)(
                                                     &out, 1, MPI_INT, 0, i, MPI_COMM_SELF)
                                               : MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
    CHECK(status == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == i);
  }
  MPI_Finalize();
}
#else
/// What the program looks at is bound when it is loaded, what it calls at its first call.
extern int flush(void) __asm__("MPI_Buffer_flush") __attribute__((weak));
static int (*const volatile flush_as_loaded)(void) = flush;

typedef int (*Poll)(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);

int main(int argc, char** argv) {
  const Poll early = (Poll)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
  MPI_Init(&argc, &argv);
  CHECK(flush_as_loaded == NULL || flush() != MPI_SUCCESS);
  const char* who = "program";
  NAMES(SAY_AS_LOOKED_UP)
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
