// Four ranks: one window of each flavour, every operation of one-sided communication and every way
// to synchronize. Each rank writes what it did into FOLDER/told-RANK.txt, a line per call:
// window, operation, target (-1 all, -2 nobody), bytes to the target, bytes back.
// `one_sided FOLDER`
#include "tests/e2e/mpi/programs/check.h"

enum { kCount = 64 };
static FILE* g_told;
static const char* g_window;

static void tell(const char* operation, int target, int sent, int received) {
  fprintf(g_told, "%s %s %d %d %d\n", g_window, operation, target, sent, received);
}
static void tell_all(const char* operation) { tell(operation, -1, 0, 0); }

static void name_it(MPI_Win window, const char* name) {
  CHECK(MPI_Win_set_name(window, name) == MPI_SUCCESS);
  g_window = name;
}

/// Fences, on a communicator whose ranks run backwards, with a derived type and with nobody.
static void use_created(void) {
  MPI_Comm reversed;
  MPI_Win window;
  MPI_Datatype every_second;
  static int memory[kCount];
  int own[kCount] = {0};
  int rank;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  MPI_Comm_rank(reversed, &rank);
  CHECK(rank == world_count() - 1 - world_rank());
  const int next = (rank + 1) % world_count();
  MPI_Type_vector(3, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, reversed, &window);
  name_it(window, "created");
  tell_all("create");
  MPI_Win_fence(0, window);
  tell_all("fence");
  for (int i = 0; i < kCount; ++i) own[i] = 100 * rank + i;
  MPI_Put(own, 10, MPI_INT, next, 0, 10, MPI_INT, window);
  tell("put", next, 40, 0);
  MPI_Put(own, 2, every_second, next, 20, 6, MPI_INT, window);
  tell("put", next, 24, 0);
  MPI_Put(own, 7, MPI_INT, MPI_PROC_NULL, 0, 7, MPI_INT, window);
  tell("put", -2, 0, 0);
  MPI_Win_fence(0, window);
  tell_all("fence");
  const int from = (rank + world_count() - 1) % world_count();
  CHECK(memory[9] == 100 * from + 9);
  CHECK(memory[21] == 100 * from + 2);
  int got[5] = {0};
  MPI_Get(got, 5, MPI_INT, next, 0, 5, MPI_INT, window);
  tell("get", next, 0, 20);
  MPI_Win_fence(0, window);
  tell_all("fence");
  CHECK(got[4] == 100 * rank + 4);
  MPI_Accumulate(own, 3, MPI_INT, next, 0, 3, MPI_INT, MPI_SUM, window);
  tell("accumulate", next, 12, 0);
  MPI_Win_fence(0, window);
  tell_all("fence");
  CHECK(memory[2] == 2 * (100 * from + 2));
  MPI_Win_free(&window);
  tell_all("free");
  MPI_Type_free(&every_second);
  MPI_Comm_free(&reversed);
}

/// Start, complete, post and wait or test with the neighbours, on world ranks.
static void use_epochs(void) {
  MPI_Win window;
  MPI_Group world;
  MPI_Group to;
  MPI_Group from;
  double* memory;
  double own[8];
  const int rank = world_rank();
  const int count = world_count();
  const int next = (rank + 1) % count;
  const int last = (rank + count - 1) % count;
  MPI_Win_allocate(8 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  name_it(window, "allocated");
  tell_all("create_allocated");
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &next, &to);
  MPI_Group_incl(world, 1, &last, &from);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) own[i] = rank + round;
    MPI_Win_post(from, 0, window);
    tell_all("post");
    MPI_Win_start(to, 0, window);
    tell_all("start");
    MPI_Put(own, 8, MPI_DOUBLE, next, 0, 8, MPI_DOUBLE, window);
    tell("put", next, 64, 0);
    MPI_Win_complete(window);
    tell_all("complete");
    if (round == 0) {
      MPI_Win_wait(window);
      tell_all("wait");
    } else {
      int flag = 0;
      while (!flag) CHECK(MPI_Win_test(window, &flag) == MPI_SUCCESS);
      tell_all("test");
    }
    CHECK(memory[7] == last + round);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&world);
  MPI_Win_free(&window);
  tell_all("free_allocated");
}

/// Everybody's memory at once: lock_all, sync, atomics and flushes.
static void use_shared(void) {
  MPI_Win window;
  MPI_Comm node;
  long long* memory;
  long long one = 1;
  long long zero = 0;
  long long seen[4] = {0};
  long long own[4] = {1, 1, 1, 1};
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Win_allocate_shared(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, node, &memory,
                          &window);
  name_it(window, "shared");
  tell_all("create_allocated");
  memset(memory, 0, 4 * sizeof *memory);
  MPI_Win_fence(0, window);
  tell_all("fence");
  MPI_Win_lock_all(0, window);
  tell_all("lock_all");
  MPI_Win_sync(window);
  tell_all("sync");
  MPI_Fetch_and_op(&one, &seen[0], MPI_LONG_LONG, 0, 0, MPI_SUM, window);
  tell("fetch_and_op", 0, 8, 8);
  MPI_Win_flush(0, window);
  tell("flush", 0, 0, 0);
  CHECK(seen[0] >= 0 && seen[0] < world_count());
  MPI_Fetch_and_op(NULL, &seen[1], MPI_LONG_LONG, 0, 0, MPI_NO_OP, window);
  tell("fetch_and_op", 0, 0, 8);
  MPI_Win_flush_local(0, window);
  tell("flush_local", 0, 0, 0);
  CHECK(seen[1] > seen[0]);
  MPI_Compare_and_swap(&one, &zero, &seen[2], MPI_LONG_LONG, 1, 1, window);
  tell("compare_and_swap", 1, 8, 8);
  MPI_Win_flush_local_all(window);
  tell_all("flush_local_all");
  CHECK(seen[2] == 0 || seen[2] == 1);
  MPI_Get_accumulate(own, 2, MPI_LONG_LONG, seen, 2, MPI_LONG_LONG, 2, 2, 2, MPI_LONG_LONG, MPI_SUM,
                     window);
  tell("get_accumulate", 2, 16, 16);
  MPI_Get_accumulate(NULL, 0, MPI_BYTE, seen + 2, 2, MPI_LONG_LONG, 2, 2, 2, MPI_LONG_LONG,
                     MPI_NO_OP, window);
  tell("get_accumulate", 2, 0, 16);
  MPI_Win_flush_all(window);
  tell_all("flush_all");
  MPI_Win_unlock_all(window);
  tell_all("unlock_all");
  MPI_Win_free(&window);
  tell_all("free_allocated");
  MPI_Comm_free(&node);
}

/// Memory that is attached later, one lock at a time, and transfers with requests.
static void use_dynamic(void) {
  MPI_Win window;
  MPI_Aint place;
  MPI_Aint places[16];
  MPI_Request requests[2];
  MPI_Status statuses[2];
  static int memory[kCount];
  int own[4] = {1, 2, 3, 4};
  int got[4] = {0};
  int flag = 0;
  const int next = (world_rank() + 1) % world_count();
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  name_it(window, "dynamic");
  tell_all("create");
  CHECK(MPI_Win_attach(window, memory, sizeof memory) == MPI_SUCCESS);
  MPI_Get_address(memory, &place);
  MPI_Allgather(&place, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window);
  tell("lock_exclusive", next, 0, 0);
  MPI_Put(own, 4, MPI_INT, next, places[next], 4, MPI_INT, window);
  tell("put", next, 16, 0);
  MPI_Win_unlock(next, window);
  tell("unlock", next, 0, 0);
  MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
  tell("lock_shared", next, 0, 0);
  MPI_Rput(own, 4, MPI_INT, next, places[next] + 64, 4, MPI_INT, window, &requests[0]);
  tell("put", next, 16, 0);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Raccumulate(own, 3, MPI_INT, next, places[next] + 128, 3, MPI_INT, MPI_SUM, window,
                  &requests[0]);
  tell("accumulate", next, 12, 0);
  MPI_Rget(got, 2, MPI_INT, next, places[next], 2, MPI_INT, window, &requests[1]);
  tell("get", next, 0, 8);
  MPI_Waitall(2, requests, statuses);
  CHECK(got[1] == 2);
  MPI_Rget_accumulate(own, 4, MPI_INT, got, 4, MPI_INT, next, places[next] + 192, 4, MPI_INT,
                      MPI_REPLACE, window, &requests[0]);
  tell("get_accumulate", next, 16, 16);
  while (!flag) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  MPI_Rput(own, 4, MPI_INT, MPI_PROC_NULL, 0, 4, MPI_INT, window, &requests[0]);
  tell("put", -2, 0, 0);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Win_unlock(next, window);
  tell("unlock", next, 0, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(memory[3] == 4 && memory[19] == 4 && memory[34] == 3 && memory[51] == 4);
  CHECK(MPI_Win_detach(window, memory) == MPI_SUCCESS);
  MPI_Win_free(&window);
  tell_all("free");
}

/// A window that is made, and an epoch that begins, while nothing is recorded.
static void use_after_pause(void) {
  MPI_Win window;
  MPI_Group world;
  MPI_Group to;
  MPI_Group from;
  static int memory[kCount];
  int one = 1;
  const int next = (world_rank() + 1) % world_count();
  const int last = (world_rank() + world_count() - 1) % world_count();
  MPI_Pcontrol(0);
  MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Pcontrol(1);
  name_it(window, "paused");
  MPI_Win_fence(0, window);
  tell_all("fence");
  MPI_Put(&one, 1, MPI_INT, 0, 4 * world_rank(), 1, MPI_INT, window);
  tell("put", 0, 4, 0);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  tell_all("fence");
  CHECK(world_rank() != 0 || memory[3] == 1);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &next, &to);
  MPI_Group_incl(world, 1, &last, &from);
  MPI_Win_post(from, 0, window);
  tell_all("post");
  MPI_Pcontrol(0);
  MPI_Win_start(to, 0, window);
  MPI_Pcontrol(1);
  MPI_Win_complete(window);
  tell_all("complete");
  MPI_Win_wait(window);
  tell_all("wait");
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&world);
  MPI_Win_free(&window);
  tell_all("free");
}

int main(int argc, char** argv) {
  char path[4096];
  MPI_Init(&argc, &argv);
  CHECK(argc > 1 && world_count() == 4);
  snprintf(path, sizeof path, "%s/told-%d.txt", argv[1], world_rank());
  g_told = fopen(path, "w");
  CHECK(g_told != NULL);
  use_created();
  use_epochs();
  use_shared();
  use_dynamic();
  use_after_pause();
  CHECK(fclose(g_told) == 0);
  MPI_Finalize();
  return 0;
}
