/// What the test programs share: a check that ends the program with its line.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      _Exit(99);                                                              \
    }                                                                         \
  } while (0)

static inline int world_rank(void) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
static inline int world_count(void) {
  int count;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}
