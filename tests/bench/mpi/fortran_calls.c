// What a call from Fortran costs, as a Fortran compiler calls it: `fortran_calls PARTS` and
//     send      a Send to nobody
//     request   an Isend to nobody with its Wait
//     c         the same from C
//     count     a call that is only counted (MPI_Comm_rank)
// Parts of 100 calls take turns, as in ping_pong.c: mpi_ names, which a preloaded library wraps;
// pmpi_ names behind a function that only forwards; the same between two reads of the clock.
// Prints the lowest decile of each in ns a call: `wrapped F plain F clock F`.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { kPartCalls = 100, kLayers = 3 };

void mpi_init_(int* error);
void mpi_finalize_(int* error);
void mpi_comm_rank_(int* comm, int* rank, int* error);
void pmpi_comm_rank_(int* comm, int* rank, int* error);
void mpi_send_(void* data, int* count, int* type, int* peer, int* tag, int* comm, int* error);
void pmpi_send_(void* data, int* count, int* type, int* peer, int* tag, int* comm, int* error);
void mpi_isend_(void* data, int* count, int* type, int* peer, int* tag, int* comm, int* request,
                int* error);
void pmpi_isend_(void* data, int* count, int* type, int* peer, int* tag, int* comm, int* request,
                 int* error);
void mpi_wait_(int* request, int* status, int* error);
void pmpi_wait_(int* request, int* status, int* error);

// Values of Open MPI's mpif.h.
static int g_world = 0;
static int g_double = 17;
static int g_nobody = -2;
static volatile uint64_t g_ticks;

static uint64_t ticks(void) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

struct layer {
  void (*rank)(int*, int*, int*);
  void (*send)(void*, int*, int*, int*, int*, int*, int*);
  void (*start)(void*, int*, int*, int*, int*, int*, int*, int*);
  void (*wait)(int*, int*, int*);
  int (*start_c)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*wait_c)(MPI_Request*, MPI_Status*);
};

__attribute__((noinline)) static void plain_rank(int* comm, int* rank, int* error) {
  pmpi_comm_rank_(comm, rank, error);
}
__attribute__((noinline)) static void plain_send(void* data, int* count, int* type, int* peer,
                                                 int* tag, int* comm, int* error) {
  pmpi_send_(data, count, type, peer, tag, comm, error);
}
__attribute__((noinline)) static void plain_start(void* data, int* count, int* type, int* peer,
                                                  int* tag, int* comm, int* request, int* error) {
  pmpi_isend_(data, count, type, peer, tag, comm, request, error);
}
__attribute__((noinline)) static void plain_wait(int* request, int* status, int* error) {
  pmpi_wait_(request, status, error);
}
static void clock_rank(int* comm, int* rank, int* error) {
  const uint64_t start = ticks();
  pmpi_comm_rank_(comm, rank, error);
  g_ticks = ticks() - start;
}
static void clock_send(void* data, int* count, int* type, int* peer, int* tag, int* comm,
                       int* error) {
  const uint64_t start = ticks();
  pmpi_send_(data, count, type, peer, tag, comm, error);
  g_ticks = ticks() - start;
}
static void clock_start(void* data, int* count, int* type, int* peer, int* tag, int* comm,
                        int* request, int* error) {
  const uint64_t start = ticks();
  pmpi_isend_(data, count, type, peer, tag, comm, request, error);
  g_ticks = ticks() - start;
}
static void clock_wait(int* request, int* status, int* error) {
  const uint64_t start = ticks();
  pmpi_wait_(request, status, error);
  g_ticks = ticks() - start;
}

__attribute__((noinline)) static int plain_start_c(const void* data, int count, MPI_Datatype type,
                                                   int peer, int tag, MPI_Comm comm,
                                                   MPI_Request* request) {
  return PMPI_Isend(data, count, type, peer, tag, comm, request);
}
__attribute__((noinline)) static int plain_wait_c(MPI_Request* request, MPI_Status* status) {
  return PMPI_Wait(request, status);
}
static int clock_start_c(const void* data, int count, MPI_Datatype type, int peer, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  const uint64_t start = ticks();
  const int result = PMPI_Isend(data, count, type, peer, tag, comm, request);
  g_ticks = ticks() - start;
  return result;
}
static int clock_wait_c(MPI_Request* request, MPI_Status* status) {
  const uint64_t start = ticks();
  const int result = PMPI_Wait(request, status);
  g_ticks = ticks() - start;
  return result;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void send(const struct layer* layer) {
  double value = 0;
  int count = 1;
  int tag = 7;
  int error;
  for (int i = 0; i < kPartCalls; ++i)
    layer->send(&value, &count, &g_double, &g_nobody, &tag, &g_world, &error);
}

static void send_and_wait_c(const struct layer* layer) {
  double value = 0;
  MPI_Request request;
  MPI_Status status;
  for (int i = 0; i < kPartCalls / 2; ++i) {
    layer->start_c(&value, 1, MPI_DOUBLE, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &request);
    layer->wait_c(&request, &status);
  }
}

static void send_and_wait(const struct layer* layer) {
  double value = 0;
  int count = 1;
  int tag = 7;
  int request;
  int error;
  int status[8];
  for (int i = 0; i < kPartCalls / 2; ++i) {
    layer->start(&value, &count, &g_double, &g_nobody, &tag, &g_world, &request, &error);
    layer->wait(&request, status, &error);
  }
}

static void ask_rank(const struct layer* layer) {
  int rank;
  int error;
  for (int i = 0; i < kPartCalls; ++i) layer->rank(&g_world, &rank, &error);
}

static int compare(const void* a, const void* b) {
  const double difference = *(const double*)a - *(const double*)b;
  return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char** argv) {
  const struct layer layers[kLayers] = {
      {mpi_comm_rank_, mpi_send_, mpi_isend_, mpi_wait_, MPI_Isend, MPI_Wait},
      {plain_rank, plain_send, plain_start, plain_wait, plain_start_c, plain_wait_c},
      {clock_rank, clock_send, clock_start, clock_wait, clock_start_c, clock_wait_c}};
  const struct {
    const char* name;
    void (*run)(const struct layer*);
  } modes[] = {
      {"send", send}, {"request", send_and_wait}, {"c", send_and_wait_c}, {"count", ask_rank}};
  const long parts = argc > 1 ? atol(argv[1]) : 20000;
  void (*run)(const struct layer*) = NULL;
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i)
    if (argc > 2 && strcmp(argv[2], modes[i].name) == 0) run = modes[i].run;
  if (run == NULL) {
    fprintf(stderr, "usage: %s PARTS send|request|c|count\n", argv[0]);
    return 2;
  }
  double* each[kLayers];
  int error;
  mpi_init_(&error);
  for (int i = 0; i < kLayers; ++i) each[i] = malloc(sizeof(double) * (size_t)parts);
  for (long part = 0; part < parts * kLayers; ++part) {
    const struct layer* layer = &layers[part % kLayers];
    const double start = now_ns();
    run(layer);
    each[part % kLayers][part / kLayers] = (now_ns() - start) / kPartCalls;
  }
  for (int i = 0; i < kLayers; ++i) qsort(each[i], (size_t)parts, sizeof(double), compare);
  printf("wrapped %.2f plain %.2f clock %.2f\n", each[0][parts / 10], each[1][parts / 10],
         each[2][parts / 10]);
  for (int i = 0; i < kLayers; ++i) free(each[i]);
  mpi_finalize_(&error);
  return 0;
}
