// Windows of every flavour, every operation on them and every way to order operations.
#include "tests/e2e/mpi/programs/every/every.h"

enum { kPlaces = 8 };

/// Reads one integer of the other rank's window. Within an epoch of locks.
static int peek(MPI_Win win, int place) {
  int value = -1;
  OK(MPI_Get(&value, 1, MPI_INT, other, place, 1, MPI_INT, win));
  OK(MPI_Win_flush(other, win));
  return value;
}

static void fences(int* memory, MPI_Win win) {
  const int value = 10 + me;
  int got = -1;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, other, 0, 1, MPI_INT, win));
  OK(MPI_Accumulate(&value, 1, MPI_INT, other, 1, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get(&got, 1, MPI_INT, other, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK(memory[0] == 10 + other && memory[1] == 10 + other && got == 10 + me);
}

/// Rank 0 puts into rank 1's, twice: one waits and one tests.
static void starts_and_posts(int* memory, MPI_Win win) {
  MPI_Group all, peer;
  int flag = 0;
  OK(MPI_Comm_group(W, &all));
  OK(MPI_Group_incl(all, 1, &other, &peer));
  for (int round = 0; round < 2; ++round) {
    const int value = 20 + round;
    if (me == 0) {
      OK(MPI_Win_start(peer, 0, win));
      OK(MPI_Put(&value, 1, MPI_INT, 1, 2, 1, MPI_INT, win));
      OK(MPI_Win_complete(win));
    } else {
      OK(MPI_Win_post(peer, 0, win));
      if (round == 0) OK(MPI_Win_wait(win));
      for (flag = 0; round == 1 && !flag;) OK(MPI_Win_test(win, &flag));
      CHECK(memory[2] == value);
    }
  }
  OK(MPI_Group_free(&peer));
  OK(MPI_Group_free(&all));
  OK(MPI_Barrier(W));
}

static void locks(MPI_Win win) {
  const int value = 30 + me, zero = 0;
  int old = -1;
  OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, win));
  OK(MPI_Put(&zero, 1, MPI_INT, other, 3, 1, MPI_INT, win));
  OK(MPI_Win_unlock(other, win));
  OK(MPI_Barrier(W));
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Get_accumulate(&value, 1, MPI_INT, &old, 1, MPI_INT, other, 3, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_flush(other, win));
  CHECK(old == 0 && peek(win, 3) == value);
  OK(MPI_Fetch_and_op(&value, &old, MPI_INT, other, 3, MPI_REPLACE, win));
  OK(MPI_Win_flush_all(win));
  CHECK(old == value);
  OK(MPI_Compare_and_swap(&zero, &value, &old, MPI_INT, other, 3, win));
  OK(MPI_Win_flush_local(other, win));
  OK(MPI_Win_flush_local_all(win));
  CHECK(old == value);
  OK(MPI_Win_sync(win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(W));
}

static void with_requests(MPI_Win win) {
  const int value = 40 + me;
  int got = -1, old = -1;
  MPI_Request request;
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Rput(&value, 1, MPI_INT, other, 4, 1, MPI_INT, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush(other, win));
  OK(MPI_Rget(&got, 1, MPI_INT, other, 4, 1, MPI_INT, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(got == value);
  OK(MPI_Raccumulate(&value, 1, MPI_INT, other, 4, 1, MPI_INT, MPI_SUM, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush(other, win));
  OK(MPI_Rget_accumulate(&value, 1, MPI_INT, &old, 1, MPI_INT, other, 4, 1, MPI_INT, MPI_NO_OP, win,
                         &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(old == 2 * value);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(W));
}

static void names(MPI_Win win) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0, size = 0;
  MPI_Group group;
  MPI_Info info;
  OK(MPI_Win_set_name(win, "a window"));
  OK(MPI_Win_get_name(win, name, &length));
  CHECK(strcmp(name, "a window") == 0 && length == 8);
  OK(MPI_Win_get_group(win, &group));
  OK(MPI_Group_size(group, &size));
  CHECK(size == 2);
  OK(MPI_Group_free(&group));
  OK(MPI_Win_get_info(win, &info));
  OK(MPI_Win_set_info(win, info));
  OK(MPI_Info_free(&info));
}

static void allocated(void) {
  int* memory = NULL;
  MPI_Win win;
  OK(MPI_Win_allocate(kPlaces * sizeof(int), sizeof(int), MPI_INFO_NULL, W, &memory, &win));
  memset(memory, 0, kPlaces * sizeof(int));
  OK(MPI_Barrier(W));
  fences(memory, win);
  starts_and_posts(memory, win);
  locks(win);
  with_requests(win);
  names(win);
  OK(MPI_Win_free(&win));
  CHECK(win == MPI_WIN_NULL);
}

static void shared(void) {
  int *memory = NULL, *others = NULL;
  MPI_Aint size_bytes = 0;
  Unit unit = 0;
  MPI_Win win;
  OK(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, W, &memory, &win));
  OK(MPI_Win_shared_query(win, other, &size_bytes, &unit, &others));
  CHECK(size_bytes == sizeof(int) && unit == sizeof(int));
  OK(MPI_Win_fence(0, win));
  *others = 50 + me;
  OK(MPI_Win_fence(0, win));
  CHECK(*memory == 50 + other);
  OK(MPI_Win_free(&win));
}

static void dynamic(void) {
  int* memory = NULL;
  const int value = 60 + me;
  MPI_Aint mine = 0, theirs = 0;
  MPI_Win win;
  OK(MPI_Alloc_mem(sizeof(int), MPI_INFO_NULL, &memory));
  *memory = 0;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, W, &win));
  OK(MPI_Win_attach(win, memory, sizeof(int)));
  OK(MPI_Get_address(memory, &mine));
  OK(MPI_Sendrecv(&mine, 1, MPI_AINT, other, 1, &theirs, 1, MPI_AINT, other, 1, W,
                  MPI_STATUS_IGNORE));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, other, theirs, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK(*memory == 60 + other);
  OK(MPI_Win_detach(win, memory));
  OK(MPI_Win_free(&win));
  OK(MPI_Free_mem(memory));
}

void one_sided(void) {
  allocated();
  shared();
  dynamic();
}
