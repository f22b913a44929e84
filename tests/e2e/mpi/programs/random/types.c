/// Datatypes and counts of the plan.
#include "tests/e2e/mpi/programs/random/random.h"

enum { kShapes = 9 };

static MPI_Datatype holey_struct(int a, int b) {
  MPI_Datatype made, resized;
  const int lengths[] = {a, b};
  const MPI_Aint places[] = {0, 8 * (MPI_Aint)a + 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  DO(Type_create_struct, 2, lengths, places, types, &made);
  DO(Type_create_resized, made, 0, places[1] + 8 * (MPI_Aint)b + 16, &resized);
  DO(Type_free, &made);
  return resized;
}

MPI_Datatype random_type(Random* random, int* bytes, int* extent, bool* is_own) {
  MPI_Datatype type = MPI_BYTE;
  const int shape = below(random, kShapes), a = 1 + below(random, 4), b = 1 + below(random, 3);
  *is_own = shape > 3;
  *bytes = *extent = 1;
  if (shape == 1) type = MPI_INT, *bytes = *extent = 4;
  if (shape == 2) type = MPI_DOUBLE, *bytes = *extent = 8;
  if (shape == 3) type = MPI_DOUBLE_INT, *bytes = 12, *extent = 16;
  if (shape == 4) {
    DO(Type_vector, a, b, b + 2, MPI_INT, &type);
    *bytes = 4 * a * b, *extent = 4 * a * (b + 2);
  } else if (shape == 5) {
    const int lengths[] = {a, 0, b}, places[] = {6, 3, 0};
    DO(Type_indexed, 3, lengths, places, MPI_SHORT, &type);
    *bytes = 2 * (a + b), *extent = 32;
  } else if (shape == 6) {
    type = holey_struct(a, b);
    *bytes = 4 * a + 8 * b, *extent = 8 * (a + b) + 24;
  } else if (shape == 7) {
    DO(Type_contiguous, a * b, MPI_FLOAT, &type);
    *bytes = *extent = 4 * a * b;
  } else if (shape == 8) {
    const MPI_Aint places[] = {8, 40};
    DO(Type_create_hindexed_block, 2, a, places, MPI_INT, &type);
    *bytes = 8 * a, *extent = 64;
  }
  if (*is_own) DO(Type_commit, &type);
  return type;
}

int random_count(Random* random, int type_bytes) {
  const int way = below(random, 10);
  if (way < 2) return 0;
  if (way < 8) return 1 + below(random, 20);
  if (way < 9) return 1 + below(random, 4000) / type_bytes;
  return 1 + below(random, 100000) / type_bytes;
}

Comm* random_comm(State* s, bool (*is_wanted)(const Comm*)) {
  const int first = below(&s->plan, kMaxComms);
  for (int i = 0; i < kMaxComms; ++i) {
    Comm* c = &s->comms[(first + i) % kMaxComms];
    if (c->is_used && (is_wanted == NULL || is_wanted(c))) return c;
  }
  return NULL;
}

bool is_within_one_group(const Comm* c) { return c->kind != kInter; }
bool has_neighbors(const Comm* c) { return c->kind == kCart || c->kind == kGraph; }
