/// Steps of one window: made in some way, some epochs of every kind with transfers to random
/// targets, and its end.
#include <sched.h>

#include "tests/e2e/mpi/programs/random/random.h"

enum { kRegionBytes = 512, kMostInts = 60 };

typedef struct {
  const Comm* c;
  MPI_Win win;
  int id;
  MPI_Aint bases[kMaxProcesses];  ///< of a dynamic one: addresses; else 0
  MPI_Group group;
} Window;

static void tell_transfer(const Window* w, const char* kind, int target, int64_t sent,
                          int64_t received) {
  if (target == MPI_PROC_NULL) return;
  tell("rma %d %s %d %lld %lld", w->id, kind, w->c->world[0][target], (long long)sent,
       (long long)received);
}

/// Each origin has a part of every target's memory to itself.
static MPI_Aint place(const Window* w, int target) {
  const MPI_Aint base = target == MPI_PROC_NULL ? 0 : w->bases[target];
  return base + w->c->rank * kRegionBytes;
}

static void transfer(State* s, const Window* w, int target, bool has_requests) {
  const int way = below(&s->own, has_requests ? 10 : 6), n = below(&s->own, kMostInts);
  const MPI_Aint at = place(w, target);
  int *out = buffer(s, 4 * kMostInts), *in = buffer(s, 4 * kMostInts);
  const bool is_nop = chance(&s->own, 30);
  MPI_Op op = is_nop ? MPI_NO_OP : MPI_SUM;
  const int64_t bytes = 4 * n;
  MPI_Win win = w->win;
  if (way == 0 || way == 6) tell_transfer(w, "puts", target, bytes, 0);
  if (way == 1 || way == 7) tell_transfer(w, "gets", target, 0, bytes);
  if (way == 2 || way == 8) tell_transfer(w, "atomics", target, bytes, 0);
  if (way == 3 || way == 9) tell_transfer(w, "atomics", target, is_nop ? 0 : bytes, bytes);
  if (way == 4) tell_transfer(w, "atomics", target, is_nop ? 0 : 4, 4);
  if (way == 5) tell_transfer(w, "atomics", target, 4, 4);
  if (way == 0) DO(Put, out, n, MPI_INT, target, at, n, MPI_INT, win);
  if (way == 1) DO(Get, in, n, MPI_INT, target, at, n, MPI_INT, win);
  if (way == 2) DO(Accumulate, out, n, MPI_INT, target, at, n, MPI_INT, MPI_SUM, win);
  if (way == 3)
    DO(Get_accumulate, out, n, MPI_INT, in, n, MPI_INT, target, at, n, MPI_INT, op, win);
  if (way == 4) DO(Fetch_and_op, out, in, MPI_INT, target, at, op, win);
  if (way == 5) DO(Compare_and_swap, out, out + 1, in, MPI_INT, target, at, win);
  if (way < 6) return;
  MPI_Request* r = new_request(s, false);
  if (way == 6) DO(Rput, out, n, MPI_INT, target, at, n, MPI_INT, win, r);
  if (way == 7) DO(Rget, in, n, MPI_INT, target, at, n, MPI_INT, win, r);
  if (way == 8) DO(Raccumulate, out, n, MPI_INT, target, at, n, MPI_INT, MPI_SUM, win, r);
  if (way == 9)
    DO(Rget_accumulate, out, n, MPI_INT, in, n, MPI_INT, target, at, n, MPI_INT, op, win, r);
}

static int random_target(State* s, const Window* w) {
  return chance(&s->own, 5) ? MPI_PROC_NULL : below(&s->own, w->c->size[0]);
}

static void fences(State* s, Window* w) {
  DO(Win_fence, MPI_MODE_NOPRECEDE, w->win);
  for (int round = below(&s->plan, 3); round >= 0; --round) {
    for (int i = below(&s->own, 5); i > 0; --i) transfer(s, w, random_target(s, w), false);
    DO(Win_fence, round == 0 ? MPI_MODE_NOSUCCEED : 0, w->win);
  }
}

static void locks(State* s, Window* w) {
  for (int i = below(&s->own, 3); i >= 0; --i) {
    const int target = below(&s->own, w->c->size[0]);
    DO(Win_lock, chance(&s->own, 50) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, w->win);
    for (int k = below(&s->own, 4); k > 0; --k) transfer(s, w, target, true);
    if (chance(&s->own, 40)) DO(Win_flush, target, w->win);
    for (int k = below(&s->own, 3); k > 0; --k) transfer(s, w, target, true);
    if (chance(&s->own, 40)) DO(Win_flush_local, target, w->win);
    if (chance(&s->own, 60)) drain(s, 0);
    DO(Win_unlock, target, w->win);
  }
}

static void lock_all(State* s, Window* w) {
  DO(Win_lock_all, 0, w->win);
  for (int i = below(&s->own, 8); i > 0; --i) {
    transfer(s, w, random_target(s, w), true);
    const int way = below(&s->own, 8);
    if (way == 0) DO(Win_flush_all, w->win);
    if (way == 1) DO(Win_flush_local_all, w->win);
    if (way == 2) DO(Win_sync, w->win);
    if (way == 3) drain(s, 0);
  }
  DO(Win_unlock_all, w->win);
}

static void posts_and_starts(State* s, Window* w) {
  DO(Win_post, w->group, 0, w->win);
  DO(Win_start, w->group, 0, w->win);
  for (int i = below(&s->own, 5); i > 0; --i) transfer(s, w, below(&s->own, w->c->size[0]), false);
  DO(Win_complete, w->win);
  int is_over = 0;
  if (chance(&s->own, 50)) {
    DO(Win_wait, w->win);
    return;
  }
  while (!is_over) {
    DO(Win_test, w->win, &is_over);
    if (!is_over) sched_yield();
  }
}

static void make(State* s, Window* w, int way) {
  const MPI_Aint bytes = kMaxProcesses * kRegionBytes;
  void* memory;
  MPI_Comm comm = w->c->handle;
  if (way == 0) DO(Win_create, buffer(s, (size_t)bytes), bytes, 1, MPI_INFO_NULL, comm, &w->win);
  if (way == 1) DO(Win_allocate, bytes, 1, MPI_INFO_NULL, comm, &memory, &w->win);
  if (way == 2) DO(Win_allocate_shared, bytes, 1, MPI_INFO_NULL, comm, &memory, &w->win);
  if (way != 3) return;
  DO(Win_create_dynamic, MPI_INFO_NULL, comm, &w->win);
  memory = buffer(s, (size_t)bytes);
  DO(Win_attach, w->win, memory, bytes);
  MPI_Aint address;
  PMPI_Get_address(memory, &address);
  PMPI_Allgather(&address, 1, MPI_AINT, w->bases, 1, MPI_AINT, comm);
}

void step_window(State* s) {
  Comm* c = random_comm(s, is_within_one_group);
  const int way = below(&s->plan, 4), epochs = 1 + below(&s->plan, 4);
  if (!is_member(c)) return;
  Window window = {.c = c, .id = c->id + s->step};
  Window* w = &window;
  make(s, w, way);
  DO(Win_get_group, w->win, &w->group);
  for (int i = 0; i < epochs; ++i) {
    const int epoch = below(&s->plan, 4);
    if (epoch == 0) fences(s, w);
    if (epoch == 1) locks(s, w);
    if (epoch == 2) lock_all(s, w);
    if (epoch == 3) posts_and_starts(s, w);
    PMPI_Barrier(c->handle);
  }
  DO(Group_free, &w->group);
  drain(s, 0);
  DO(Win_free, &w->win);
}
