// MPI_THREAD_MULTIPLE: one thread begins writes that another completes, beside one that does both;
// then a sequential file, of which nobody may ask where its pointer is. `files_threads FILE`
#include <pthread.h>

#include "tests/e2e/mpi/programs/check.h"

enum { kHanded = 200, kOwn = 100, kBytes = 64 };

static MPI_File g_file;
static MPI_Request g_requests[kHanded];
static char g_blocks[kHanded][kBytes];
static pthread_barrier_t g_are_begun;

static void* complete_all(void* unused) {
  pthread_barrier_wait(&g_are_begun);
  for (int i = 0; i < kHanded; ++i) MPI_Wait(&g_requests[i], MPI_STATUS_IGNORE);
  return unused;
}

static void* write_alone(void* unused) {
  char block[kBytes] = {0};
  MPI_Request request;
  for (int i = 0; i < kOwn; ++i) {
    MPI_File_iwrite_at(g_file, kBytes * i, block, kBytes, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return unused;
}

static void open_file(const char* path, int mode) {
  CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE | mode,
                      MPI_INFO_NULL, &g_file) == MPI_SUCCESS);
  MPI_File_set_errhandler(g_file, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[2];
  CHECK(argc == 2);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  CHECK(provided == MPI_THREAD_MULTIPLE);
  open_file(argv[1], MPI_MODE_RDWR);
  pthread_barrier_init(&g_are_begun, NULL, 2);
  pthread_create(&threads[0], NULL, complete_all, NULL);
  pthread_create(&threads[1], NULL, write_alone, NULL);
  for (int i = 0; i < kHanded; ++i) {
    MPI_File_iwrite_at(g_file, (kOwn + i) * kBytes, g_blocks[i], kBytes, MPI_BYTE, &g_requests[i]);
  }
  pthread_barrier_wait(&g_are_begun);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  MPI_File_close(&g_file);
  open_file(argv[1], MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  MPI_File_write_shared(g_file, g_blocks, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&g_file);
  MPI_Finalize();
  return 0;
}
