/// What a process has begun: its requests, some null or inactive, and all ways to complete them.
#include <sched.h>

#include "tests/e2e/mpi/programs/random/random.h"

void* buffer(State* s, size_t bytes) {
  CHECK(s->buffer_count < kMaxBuffers);
  void* memory = calloc(1, bytes + 64);
  CHECK(memory != NULL);
  return s->buffers[s->buffer_count++] = memory;
}

MPI_Request* new_request(State* s, bool is_persistent) {
  CHECK(s->pending_count < kMaxPending);
  const int at = s->pending_count++;
  s->requests[at] = MPI_REQUEST_NULL;
  s->is_persistent[at] = is_persistent;
  s->is_active[at] = !is_persistent;
  return &s->requests[at];
}

int index_of(const State* s, const MPI_Request* request) { return (int)(request - s->requests); }

void activate(State* s, int index) { s->is_active[index] = true; }

static void note_complete(State* s, int index) {
  CHECK(index >= 0 && index < s->pending_count);
  s->is_active[index] = false;
  CHECK(s->is_persistent[index] || s->requests[index] == MPI_REQUEST_NULL);
}

static int active_count(const State* s) {
  int count = 0;
  for (int i = 0; i < s->pending_count; ++i) count += s->is_active[i];
  return count;
}

static int random_active(State* s) {
  int at = below(&s->own, s->pending_count);
  while (!s->is_active[at]) at = (at + 1) % s->pending_count;
  return at;
}

/// A part of the requests: some are null, inactive, or the only ones.
typedef struct {
  int first, count;
} Part;

static Part random_part(State* s) {
  const int first = below(&s->own, s->pending_count);
  Part part = {first, 1 + below(&s->own, s->pending_count - first)};
  if (chance(&s->own, 40)) part = (Part){0, s->pending_count};
  return part;
}

static void wait_one(State* s) {
  const int at = random_active(s);
  MPI_Status status;
  MPI_Status* told = chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE;
  int is_complete = 1;
  if (chance(&s->own, 20)) DO(Request_get_status, s->requests[at], &is_complete, told);
  is_complete = 1;
  if (chance(&s->own, 50)) {
    DO(Wait, &s->requests[at], told);
  } else {
    DO(Test, &s->requests[at], &is_complete, told);
  }
  if (is_complete) note_complete(s, at);
}

static void wait_any(State* s) {
  const Part part = random_part(s);
  MPI_Request* requests = s->requests + part.first;
  MPI_Status status;
  MPI_Status* told = chance(&s->own, 50) ? &status : MPI_STATUS_IGNORE;
  int index = MPI_UNDEFINED, is_complete = 1;
  if (chance(&s->own, 50)) {
    DO(Waitany, part.count, requests, &index, told);
  } else {
    DO(Testany, part.count, requests, &index, &is_complete, told);
  }
  if (is_complete && index != MPI_UNDEFINED) note_complete(s, part.first + index);
}

static void wait_all(State* s, Part part, bool is_test) {
  MPI_Request* requests = s->requests + part.first;
  static _Thread_local MPI_Status statuses[kMaxPending];
  MPI_Status* told = chance(&s->own, 50) ? statuses : MPI_STATUSES_IGNORE;
  int is_complete = 1;
  if (is_test) {
    DO(Testall, part.count, requests, &is_complete, told);
  } else {
    DO(Waitall, part.count, requests, told);
  }
  for (int i = 0; is_complete && i < part.count; ++i) note_complete(s, part.first + i);
}

static void wait_some(State* s) {
  const Part part = random_part(s);
  MPI_Request* requests = s->requests + part.first;
  static _Thread_local MPI_Status statuses[kMaxPending];
  static _Thread_local int indices[kMaxPending];
  MPI_Status* told = chance(&s->own, 50) ? statuses : MPI_STATUSES_IGNORE;
  int count = 0;
  if (chance(&s->own, 50)) {
    DO(Waitsome, part.count, requests, &count, indices, told);
  } else {
    DO(Testsome, part.count, requests, &count, indices, told);
  }
  for (int i = 0; count != MPI_UNDEFINED && i < count; ++i)
    note_complete(s, part.first + indices[i]);
}

void drain(State* s, int most) {
  int turns = 0;
  while (active_count(s) > most) {
    const int way = below(&s->own, 5);
    if (way == 0) wait_one(s);
    if (way == 1) wait_any(s);
    if (way == 2) wait_all(s, random_part(s), true);
    if (way == 3) wait_some(s);
    if (way == 4 && chance(&s->own, 30)) wait_all(s, random_part(s), false);
    if (++turns % 4 == 0) sched_yield();
  }
}

void complete_active(State* s, MPI_Request* requests, int count) {
  const int way = below(&s->own, 3);
  if (way == 0) DO(Waitall, count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; way == 1 && i < count; ++i) DO(Wait, &requests[i], MPI_STATUS_IGNORE);
  for (int i = 0; way == 2 && i < count; ++i) {
    int is_complete = 0;
    while (!is_complete) {
      DO(Test, &requests[i], &is_complete, MPI_STATUS_IGNORE);
      if (!is_complete) sched_yield();
    }
  }
}

void free_all(MPI_Request* requests, int count) {
  for (int i = 0; i < count; ++i) DO(Request_free, &requests[i]);
}

void quiesce(State* s) {
  drain(s, 0);
  for (int i = 0; i < s->pending_count; ++i) {
    if (s->requests[i] != MPI_REQUEST_NULL) DO(Request_free, &s->requests[i]);
  }
  s->pending_count = 0;
  // Freed sends may still read their buffers: as long as their receivers are not done.
  PMPI_Barrier(s->comms[0].handle);
  for (int i = 0; i < s->buffer_count; ++i) free(s->buffers[i]);
  s->buffer_count = 0;
}
