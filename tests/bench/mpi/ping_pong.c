// A tight ping-pong of 8 bytes between two ranks, `ping_pong CYCLES`; between two threads of one
// rank with MPI_THREAD_MULTIPLE, each with Irecv, Send and Wait, `ping_pong CYCLES threads`; and
// polling with nothing to find, `ping_pong CYCLES poll`. Parts of 100 cycles take turns in calling MPI_ functions, which a
// preloaded library wraps; PMPI_ functions, which nothing wraps; and PMPI_ functions between two
// reads of the clock, the least that any tracer does. So all three see the same memory, cores and
// neighbours, which differ from run to run far more than the three do. Rank 0 prints the lowest
// decile of each in ns: `wrapped F plain F clock F`; a longer part always holds moments in which
// something else works on one of the two cores, if only another hyperthread.
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { kPartCycles = 100, kLayers = 3 };

static _Thread_local volatile uint64_t g_ticks;  // so that the clock is read for something

static uint64_t ticks(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

static int clock_send(const void* data, int count, MPI_Datatype type, int peer, int tag,
                      MPI_Comm communicator) {
  const uint64_t start = ticks();
  const int result = PMPI_Send(data, count, type, peer, tag, communicator);
  g_ticks += ticks() - start;
  return result;
}

static int clock_receive(void* data, int count, MPI_Datatype type, int peer, int tag,
                         MPI_Comm communicator, MPI_Status* status) {
  const uint64_t start = ticks();
  const int result = PMPI_Recv(data, count, type, peer, tag, communicator, status);
  g_ticks += ticks() - start;
  return result;
}

static int clock_test(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const uint64_t start = ticks();
  const int result = PMPI_Testany(count, requests, index, flag, status);
  g_ticks += ticks() - start;
  return result;
}

static int clock_start(void* data, int count, MPI_Datatype type, int peer, int tag,
                       MPI_Comm communicator, MPI_Request* request) {
  const uint64_t start = ticks();
  const int result = PMPI_Irecv(data, count, type, peer, tag, communicator, request);
  g_ticks += ticks() - start;
  return result;
}

static int clock_wait(MPI_Request* request, MPI_Status* status) {
  const uint64_t start = ticks();
  const int result = PMPI_Wait(request, status);
  g_ticks += ticks() - start;
  return result;
}

struct layer {
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  int (*receive)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
  int (*test)(int, MPI_Request*, int*, int*, MPI_Status*);
  int (*start)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*wait)(MPI_Request*, MPI_Status*);
};
static const struct layer kLayer[kLayers] = {
    {MPI_Send, MPI_Recv, MPI_Testany, MPI_Irecv, MPI_Wait},
    {PMPI_Send, PMPI_Recv, PMPI_Testany, PMPI_Irecv, PMPI_Wait},
    {clock_send, clock_receive, clock_test, clock_start, clock_wait}};
static long g_parts;
static double* g_each[kLayers];

static void bounce(const struct layer* layer, int rank) {
  const int peer = 1 - rank;
  double value = 0;
  if (rank == 1) layer->receive(&value, 1, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < kPartCycles; ++i) {
    layer->send(&value, 1, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD);
    if (rank == 1 && i + 1 == kPartCycles) return;
    layer->receive(&value, 1, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void poll(const struct layer* layer, MPI_Request* requests) {
  int index;
  int flag;
  for (int i = 0; i < kPartCycles; ++i) {
    layer->test(2, requests, &index, &flag, MPI_STATUS_IGNORE);
  }
}

/// One end of the ping-pong of two threads.
static void* bounce_in_thread(void* argument) {
  const int me = argument != NULL;
  double in = 0;
  double out = 0;
  MPI_Request request;
  for (long part = 0; part < g_parts * kLayers; ++part) {
    const struct layer* layer = &kLayer[part % kLayers];
    const double start = PMPI_Wtime();
    for (int i = 0; i < kPartCycles; ++i) {
      layer->start(&in, 1, MPI_DOUBLE, 0, me, MPI_COMM_WORLD, &request);
      if (me == 0) layer->send(&out, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
      layer->wait(&request, MPI_STATUS_IGNORE);
      if (me == 1) layer->send(&out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
    if (me == 0) {
      g_each[part % kLayers][part / kLayers] = (PMPI_Wtime() - start) / kPartCycles * 1e9;
    }
  }
  return NULL;
}

static void bounce_threads(void) {
  pthread_t other;
  pthread_create(&other, NULL, bounce_in_thread, &other);
  bounce_in_thread(NULL);
  pthread_join(other, NULL);
}

static int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char** argv) {
  const char* mode = argc > 2 ? argv[2] : "";
  const int polls = strcmp(mode, "poll") == 0;
  const int threads = strcmp(mode, "threads") == 0;
  double value;
  int rank;
  int level;
  MPI_Request requests[2];
  g_parts = (argc > 1 ? atol(argv[1]) : 100000) / kPartCycles;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; polls && i < 2; ++i) {
    MPI_Irecv(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 7 + i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kLayers; ++i) g_each[i] = malloc(sizeof(double) * (size_t)g_parts);
  if (threads) bounce_threads();
  for (long part = 0; !threads && part < g_parts * kLayers; ++part) {
    const struct layer* layer = &kLayer[part % kLayers];
    const double start = MPI_Wtime();
    if (polls && rank == 0) poll(layer, requests);
    if (!polls) bounce(layer, rank);
    g_each[part % kLayers][part / kLayers] = (MPI_Wtime() - start) / kPartCycles * 1e9;
  }
  for (int i = 0; i < kLayers; ++i) qsort(g_each[i], (size_t)g_parts, sizeof(double), compare);
  if (rank == 0) {
    const double scale = polls ? 1 : 0.5;
    printf("wrapped %.2f plain %.2f clock %.2f\n", g_each[0][g_parts / 10] * scale,
           g_each[1][g_parts / 10] * scale, g_each[2][g_parts / 10] * scale);
  }
  for (int i = 0; i < kLayers; ++i) free(g_each[i]);
  for (int i = 0; polls && i < 2; ++i) {
    MPI_Cancel(&requests[i]);
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
