// Two ranks, MPI_THREAD_MULTIPLE: what one thread begins another one completes: a broadcast, a
// synchronous send and a receive; first the main thread begins them, then the other one.
// `handed_over ROUNDS`
#include <pthread.h>

#include "tests/e2e/mpi/programs/check.h"

enum { kRequests = 3, kWords = 4 };
static MPI_Request g_requests[kRequests];
static int g_words[kWords];
static int g_in, g_out;
static int g_tag;  // of the thread that begins

static void begin(void) {
  const int peer = 1 - world_rank();
  MPI_Ibcast(g_words, kWords, MPI_INT, 1, MPI_COMM_WORLD, &g_requests[0]);
  MPI_Irecv(&g_in, 1, MPI_INT, peer, g_tag, MPI_COMM_WORLD, &g_requests[1]);
  MPI_Issend(&g_out, 1, MPI_INT, peer, g_tag, MPI_COMM_WORLD, &g_requests[2]);
}

static void complete(void) { MPI_Waitall(kRequests, g_requests, MPI_STATUSES_IGNORE); }

static void* call(void* function) {
  ((void (*)(void))function)();
  return NULL;
}

static void in_thread(void (*function)(void)) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, call, (void*)function) == 0);
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE && argc == 2);
  for (int round = 0; round < atoi(argv[1]); ++round) {
    g_tag = 7;
    begin();
    in_thread(complete);
    g_tag = 8;
    in_thread(begin);
    complete();
  }
  MPI_Finalize();
  return 0;
}
