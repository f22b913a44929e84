/* A program that computes and says nothing, or not for long:
 *
 *   followed spin CPU_SECONDS [THREADS]   no call of MPI; each thread, made at once, computes
 *   followed later CPU_SECONDS N          computes, then MPI_Init, N MPI_Sendrecv, MPI_Finalize
 *   followed handle CPU_SECONDS [SAYS]    computes between MPI_Init and MPI_Finalize, which it
 *                                         looks up in the library itself; with SAYS 2 in a region
 *
 * Built a second time without MPI and linked statically. */
#include <aon/annotate.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef FOLLOWED_WITHOUT_MPI
#include <mpi.h>
#endif

static double cpu_s;

static double own_cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void* compute(void* unused) {
  volatile double sum = 0;
  while (own_cpu_s() < cpu_s)
    for (int i = 0; i < 20000; ++i) sum = sum * 1.0000001 + 1;
  return unused;
}

static int spin(int thread_count) {
  pthread_t made[64];
  if (thread_count > 64) return 3;
  for (int i = 1; i < thread_count; ++i)
    if (pthread_create(&made[i], NULL, compute, NULL) != 0) return 3;
  compute(NULL);
  for (int i = 1; i < thread_count; ++i) pthread_join(made[i], NULL);
  return 0;
}

static int later(int count) {
  compute(NULL);
#ifndef FOLLOWED_WITHOUT_MPI
  char out = 0;
  char in = 0;
  MPI_Init(NULL, NULL);
  for (int i = 0; i < count; ++i)
    MPI_Sendrecv(&out, 1, MPI_CHAR, 0, 1, &in, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Finalize();
#endif
  return count < 0;
}

#ifndef FOLLOWED_WITHOUT_MPI
static int handle(int says_something) {
  Dl_info file;
  if (dladdr((void*)&PMPI_Init, &file) == 0) return 4;
  void* library = dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
  int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
  if (says_something) AON_REGION_BEGIN("work");
  init(NULL, NULL);
  compute(NULL);
  finalize();
  if (says_something) AON_REGION_END("work");
  return 0;
}
#endif

int main(int argc, char** argv) {
  if (argc < 3) return 96;
  const int number = argc > 3 ? atoi(argv[3]) : 1;
  cpu_s = atof(argv[2]);
#ifndef FOLLOWED_WITHOUT_MPI
  if (strcmp(argv[1], "handle") == 0) return handle(number == 2);
#endif
  return strcmp(argv[1], "later") == 0 ? later(number) : spin(number);
}
