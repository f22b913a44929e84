// A rank that begins MPI with a session. As a module (SLOW), behind the library under test: a
// session that takes MILLISECONDS of wall clock to begin, in which the rank computes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

#include "tests/e2e/mpi/programs/check.h"

static volatile long g_steps;

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#ifdef SLOW

__attribute__((noinline)) void start_up(long end_ms);
void start_up(long end_ms) {
  while (now_ms() < end_ms) {
    for (int i = 0; i < 100000; ++i) ++g_steps;
  }
}

int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  int (*real)(MPI_Info, MPI_Errhandler, MPI_Session*) =
      (int (*)(MPI_Info, MPI_Errhandler, MPI_Session*))dlsym(RTLD_NEXT, "PMPI_Session_init");
  CHECK(real != NULL);
  start_up(now_ms() + MILLISECONDS);
  return real(info, handler, session);
}

#else

__attribute__((noinline)) void compute(long end_ms);
void compute(long end_ms) {
  while (now_ms() < end_ms) {
    for (int i = 0; i < 100000; ++i) ++g_steps;
  }
}

int main(void) {
  MPI_Session session;
  MPI_Group all;
  MPI_Comm comm;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &all);
  MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  compute(now_ms() + MILLISECONDS);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&all);
  MPI_Session_finalize(&session);
  return 0;
}

#endif
