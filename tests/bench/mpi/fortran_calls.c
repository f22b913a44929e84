// What a call from Fortran costs: an Isend with its Wait, `fortran_calls PARTS`, and a call that is
// only counted (MPI_Comm_rank), `fortran_calls PARTS count`. They are called as a Fortran compiler
// calls them. Parts of 100 take turns, as in ping_pong.c: mpi_ names, which a preloaded library
// wraps; pmpi_ names behind a function that only forwards; the same between two reads of the clock.
// Prints the lowest decile of each in ns a call: `wrapped F plain F clock F`.
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
  void (*send)(void*, int*, int*, int*, int*, int*, int*, int*);
  void (*wait)(int*, int*, int*);
};

__attribute__((noinline)) static void plain_rank(int* comm, int* rank, int* error) {
  pmpi_comm_rank_(comm, rank, error);
}
__attribute__((noinline)) static void plain_send(void* data, int* count, int* type, int* peer,
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

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void send_and_wait(const struct layer* layer) {
  double value = 0;
  int count = 1;
  int tag = 7;
  int request;
  int error;
  int status[8];
  for (int i = 0; i < kPartCalls / 2; ++i) {
    layer->send(&value, &count, &g_double, &g_nobody, &tag, &g_world, &request, &error);
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
  const struct layer layers[kLayers] = {{mpi_comm_rank_, mpi_isend_, mpi_wait_},
                                        {plain_rank, plain_send, plain_wait},
                                        {clock_rank, clock_send, clock_wait}};
  const long parts = argc > 1 ? atol(argv[1]) : 20000;
  const int counts = argc > 2 && strcmp(argv[2], "count") == 0;
  double* each[kLayers];
  int error;
  mpi_init_(&error);
  for (int i = 0; i < kLayers; ++i) each[i] = malloc(sizeof(double) * (size_t)parts);
  for (long part = 0; part < parts * kLayers; ++part) {
    const struct layer* layer = &layers[part % kLayers];
    const double start = now_ns();
    if (counts) {
      ask_rank(layer);
    } else {
      send_and_wait(layer);
    }
    each[part % kLayers][part / kLayers] = (now_ns() - start) / kPartCalls;
  }
  for (int i = 0; i < kLayers; ++i) qsort(each[i], (size_t)parts, sizeof(double), compare);
  printf("wrapped %.2f plain %.2f clock %.2f\n", each[0][parts / 10], each[1][parts / 10],
         each[2][parts / 10]);
  for (int i = 0; i < kLayers; ++i) free(each[i]);
  mpi_finalize_(&error);
  return 0;
}
