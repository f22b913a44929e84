// What a program should not do, one case per run, `misuse CASE`: the library's own word on it must
// come, the same as without us.
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/e2e/mpi/programs/check.h"

/// Requests that nobody completes (receives that wait for ever, sends that arrive), communicators
/// that nobody frees.
static void leak(int rank) {
  static char in[2000];
  static char out[2000];
  MPI_Request request;
  MPI_Comm comm;
  for (int i = 0; i < 1000; ++i) {
    MPI_Irecv(&in[i], 1, MPI_CHAR, 1 - rank, 1000 + i, MPI_COMM_WORLD, &request);
    MPI_Irecv(&in[1000 + i], 1, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, &request);
    MPI_Isend(&out[i], 1, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD, &request);
  }
  for (int i = 0; i < 50; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

/// Children that only say hello to each other and to us, and to which we talk.
static void spawn(int rank, char** argv) {
  MPI_Comm children;
  MPI_Comm all;
  int sum = 0;
  int codes[2];
  char* child[] = {(char*)"child", NULL};
  char* under_aon[] = {
      (char*)"-o", argv[2] != NULL ? argv[3] : NULL, (char*)"--", argv[0], (char*)"child", NULL};
  const int is_under_aon = argv[2] != NULL;
  MPI_Comm_spawn(is_under_aon ? "aon-run" : argv[0], is_under_aon ? under_aon : child, 2,
                 MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
  MPI_Intercomm_merge(children, 0, &all);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == 1 + 10 + 11);
  if (rank == 0) MPI_Send(&sum, 1, MPI_INT, 1, 4, children);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&children);
}

static void hear(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  printf("heard of %s\n", *code == MPI_SUCCESS ? "success" : "an error");
}

/// An epoch without a group. Whether that is an error, and whose, is the library's to say, once.
static void start_with_nobody(void) {
  MPI_Win window;
  MPI_Errhandler handler;
  int* memory;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Win_allocate_shared(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_start(MPI_GROUP_NULL, 0, window);
  MPI_Win_free(&window);
}

/// Handles that are no more: who is told of it, and how often, is the library's to say.
static void use_freed_communicator(void) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const MPI_Comm copy = comm;
  MPI_Comm_free(&comm);
  MPI_Barrier(copy);
}

static void use_freed_type(void) {
  MPI_Datatype type;
  int value[2] = {0, 0};
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Datatype copy = type;
  MPI_Type_free(&type);
#ifndef OPEN_MPI
  copy = (MPI_Datatype)0x0c00ffff;  // MPICH dies of a freed one, or waits; this one it knows
#endif
  MPI_Send(value, 1, copy, 0, 5, MPI_COMM_SELF);
}

/// A message that is too long for its receive, of which MPI keeps what fits.
static void truncate_it(void) {
  int value[2] = {0, 0};
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Request request;
  MPI_Isend(value, 2, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
  CHECK(MPI_Recv(value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE) != MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// A send that is cancelled and then freed, so that nobody hears whether it was in time.
static void cancel_and_free(void) {
  static char text[1 << 20];
  MPI_Request request;
  MPI_Issend(text, sizeof text, MPI_CHAR, 0, 5, MPI_COMM_SELF, &request);
  MPI_Cancel(&request);
  MPI_Request_free(&request);
  MPI_Recv(text, sizeof text, MPI_CHAR, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/// The second request is none, so the first is not started; then it is, by itself.
static void start_all_but_one(void) {
  int out = 7;
  int in = 0;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Send_init(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &requests[0]);
  CHECK(MPI_Startall(2, requests) != MPI_SUCCESS);
  MPI_Start(&requests[0]);
  MPI_Recv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  CHECK(in == 7);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
}

static void listen(void) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

static jmp_buf before_the_error;

static void leave(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  longjmp(before_the_error, 1);
}

/// Calls from far below the one that was left, over memory that nobody writes to.
__attribute__((noinline)) static void call_from_below(void) {
  volatile char unused[4096];
  const int one = 1;
  int sum = 0;
  unused[0] = 0;
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/// The program's own error handler leaves the call by longjmp, and the program goes on.
static void leave_a_call(void) {
  MPI_Errhandler handler;
  const int value = 0;
  MPI_Comm_create_errhandler(leave, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  if (setjmp(before_the_error) == 0) MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
  call_from_below();
}

static int be_a_child(int rank) {
  MPI_Comm parents;
  MPI_Comm all;
  int mine = 10 + rank;
  int sum = 0;
  MPI_Comm_get_parent(&parents);
  CHECK(parents != MPI_COMM_NULL);
  MPI_Intercomm_merge(parents, 1, &all);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  CHECK(sum == 1 + 10 + 11);
  if (rank == 1) MPI_Recv(&mine, 1, MPI_INT, 0, 4, parents, MPI_STATUS_IGNORE);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&parents);
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  int value = 0;
  if (strcmp(wanted, "before_init") == 0) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (strcmp(wanted, "rank_before_init") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &value);
  MPI_Init(&argc, &argv);
  const int rank = world_rank();
  if (strcmp(wanted, "child") == 0) return be_a_child(rank);
  if (strcmp(wanted, "spawn") == 0) spawn(rank, argv);
  if (strcmp(wanted, "leak") == 0) leak(rank);
  if (strcmp(wanted, "wrong_peer") == 0) MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
  if (strcmp(wanted, "wrong_type") == 0) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
  }
  if (strcmp(wanted, "wrong_request") == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Start(&request);
  }
  if (strcmp(wanted, "wrong_window") == 0) {
    MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL);
  }
  if (strcmp(wanted, "wrong_group") == 0) start_with_nobody();
  if (strcmp(wanted, "truncate") == 0) truncate_it();
  if (strcmp(wanted, "cancel_and_free") == 0) cancel_and_free();
  if (strcmp(wanted, "start_all_but_one") == 0) start_all_but_one();
  if (strcmp(wanted, "left") == 0) leave_a_call();
  if (strncmp(wanted, "hear_", 5) == 0) listen();
  if (strstr(wanted, "freed_comm") != NULL) use_freed_communicator();
  if (strstr(wanted, "freed_type") != NULL) use_freed_type();
  if (strcmp(wanted, "plain") == 0) MPI_Pcontrol(2, "region", 7L, 11L);
  if (strcmp(wanted, "init_twice") == 0) MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(wanted, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(wanted, "abort") == 0) pause();
  if (strcmp(wanted, "no_finalize") == 0) exit(0);
  printf("%d got to the end\n", rank);
  fflush(stdout);
  MPI_Finalize();
  if (strcmp(wanted, "after_finalize") == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(wanted, "rank_after_finalize") == 0) MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return 0;
}
