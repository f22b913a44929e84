// Calls that are interrupted, one case per run, `interrupted CASE`: by a handler that comes every
// half millisecond, or for ever, by SIGKILL inside one-sided communication and calls on files.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/e2e/mpi/programs/check.h"

static volatile sig_atomic_t g_count;
static int g_rank;
static int g_peer;
static int* g_memory;
static MPI_Win g_window;
static MPI_File g_file;
static char g_bytes[1 << 16];

static void handle(int number) {
  (void)number;
  MPI_Wtime();
  ++g_count;
}

static void set_timer(int period_us) {
  struct itimerval timer = {{0, period_us}, {0, period_us}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void interrupt(void) {
  struct sigaction action;
  int out = 1;
  int in;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  set_timer(500);
  MPI_Win_lock_all(0, g_window);
  for (int i = 0; i < 1000; ++i) {
    MPI_Irecv(&in, 1, MPI_INT, g_peer, i, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&out, 1, MPI_INT, g_peer, i, MPI_COMM_WORLD, &requests[1]);
    MPI_File_iwrite_at(g_file, g_rank * 4, &out, 1, MPI_INT, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    MPI_Put(&out, 1, MPI_INT, g_peer, 0, 1, MPI_INT, g_window);
    MPI_Win_flush(g_peer, g_window);
  }
  MPI_Win_unlock_all(g_window);
  set_timer(0);
  CHECK(g_count > 0);
}

static void* die_soon(void* unused) {
  usleep(200000);
  kill(getpid(), SIGKILL);
  return unused;
}

static void be_killed(const char* where) {
  pthread_t thread;
  MPI_Request requests[2];
  const int count = sizeof g_bytes;
  pthread_create(&thread, NULL, die_soon, NULL);
  if (strcmp(where, "fence") == 0) {
    MPI_Win_fence(0, g_window);
    MPI_Put(g_bytes, 100, MPI_BYTE, g_peer, 0, 100, MPI_BYTE, g_window);
    if (g_rank == 0) MPI_Win_fence(0, g_window);
  } else if (strcmp(where, "begun") == 0) {
    MPI_File_iwrite_at(g_file, 0, g_bytes, count, MPI_BYTE, &requests[0]);
    MPI_Win_lock_all(0, g_window);
    MPI_Rput(g_bytes, 5, MPI_BYTE, g_peer, 0, 5, MPI_BYTE, g_window, &requests[1]);
  } else if (strcmp(where, "writing") == 0) {
    for (;;) MPI_File_write_at(g_file, 0, g_bytes, count, MPI_BYTE, MPI_STATUS_IGNORE);
  } else if (strcmp(where, "close") == 0 && g_rank == 0) {
    MPI_File_close(&g_file);
  }
  for (;;) pause();
}

int main(int argc, char** argv) {
  CHECK(argc == 3);
  MPI_Init(&argc, &argv);
  g_rank = world_rank();
  g_peer = 1 - g_rank;
  MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &g_memory, &g_window);
  MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &g_file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[1], "timer") == 0) {
    interrupt();
  } else {
    be_killed(argv[1]);
  }
  MPI_File_close(&g_file);
  MPI_Win_free(&g_window);
  MPI_Finalize();
  return 0;
}
