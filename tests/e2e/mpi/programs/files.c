// Two ranks: every call of MPI-IO that moves data, with every kind of pointer and view, in an order
// that files_test.py reads: the program says in FOLDER/said-RANK what each call asks for and gets,
// at which byte of the file, and checks its data. `files FOLDER [paused]`
//
//     io NAME BYTES_ASKED BYTES_MOVED OFFSET     -1: nobody can say
//     done BYTES_MOVED                           a request is complete
#include "tests/e2e/mpi/programs/check.h"

enum { kBlock = 4, kBytes = kBlock * sizeof(double), kViewStart = 8192 };

static int g_rank;
static FILE* g_said;
static double g_out[64];
static double g_in[64];
static MPI_File g_file;

#define OUT g_out, kBlock, MPI_DOUBLE
#define IN g_in, kBlock, MPI_DOUBLE

static void say(const char* name, long long asked, long long moved, long long offset) {
  fprintf(g_said, "io %s %lld %lld %lld\n", name, asked, moved, offset);
}
static void say_done(long long moved) { fprintf(g_said, "done %lld\n", moved); }

/// The block that this rank writes as number `number`.
static void fill(int number) {
  for (int i = 0; i < kBlock; ++i) g_out[i] = 1000 * number + 10 * g_rank + i;
}
static void check_block(int number) {
  for (int i = 0; i < kBlock; ++i) CHECK(g_in[i] == 1000 * number + 10 * g_rank + i);
  memset(g_in, 0, sizeof g_in);
}
static int moved_bytes(MPI_Status* status) {
  int count;
  MPI_Get_count(status, MPI_BYTE, &count);
  return count;
}
/// Where block `number` of this rank lies.
static MPI_Offset place(int number) { return (2 * number + g_rank) * kBytes; }

#define DONE(name, status, offset) say(name, kBytes, moved_bytes(status), offset)

static void wait_for(MPI_Request* request) {
  MPI_Status status;
  MPI_Wait(request, &status);
  say_done(moved_bytes(&status));
}

static void test_for(MPI_Request* request) {
  int is_done = 0;
  MPI_Status status;
  while (!is_done) MPI_Test(request, &is_done, &status);
  say_done(moved_bytes(&status));
}

static void at_explicit_offsets(void) {
  MPI_Status status;
  MPI_Request requests[2];
  fill(0);
  MPI_File_write_at(g_file, place(0), OUT, &status);
  DONE("MPI_File_write_at", &status, place(0));
  fill(1);
  MPI_File_write_at_all(g_file, place(1), OUT, MPI_STATUS_IGNORE);
  say("MPI_File_write_at_all", kBytes, kBytes, place(1));
  fill(2);
  MPI_File_iwrite_at(g_file, place(2), OUT, requests);
  say("MPI_File_iwrite_at", kBytes, 0, place(2));
  wait_for(requests);
  fill(3);
  MPI_File_iwrite_at_all(g_file, place(3), OUT, requests);
  say("MPI_File_iwrite_at_all", kBytes, 0, place(3));
  test_for(requests);
  fill(4);
  MPI_File_write_at_all_begin(g_file, place(4), OUT);
  say("MPI_File_write_at_all_begin", kBytes, 0, place(4));
  MPI_File_write_at_all_end(g_file, g_out, &status);
  say("MPI_File_write_at_all_end", 0, moved_bytes(&status), -1);

  MPI_File_read_at(g_file, place(0), IN, MPI_STATUS_IGNORE);
  say("MPI_File_read_at", kBytes, kBytes, place(0));
  check_block(0);
  MPI_File_read_at_all(g_file, place(1), IN, &status);
  DONE("MPI_File_read_at_all", &status, place(1));
  check_block(1);
  MPI_File_iread_at(g_file, place(2), IN, &requests[0]);
  say("MPI_File_iread_at", kBytes, 0, place(2));
  MPI_File_iread_at(g_file, place(3), &g_in[kBlock], kBlock, MPI_DOUBLE, &requests[1]);
  say("MPI_File_iread_at", kBytes, 0, place(3));
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);  // NOLINT
  say_done(kBytes);
  say_done(kBytes);
  memcpy(g_out, &g_in[kBlock], kBytes);
  check_block(2);
  memcpy(g_in, g_out, kBytes);
  check_block(3);
  MPI_File_iread_at_all(g_file, place(3), IN, requests);
  say("MPI_File_iread_at_all", kBytes, 0, place(3));
  wait_for(requests);
  check_block(3);
  MPI_File_read_at_all_begin(g_file, place(4), IN);
  say("MPI_File_read_at_all_begin", kBytes, 0, place(4));
  MPI_File_read_at_all_end(g_file, g_in, MPI_STATUS_IGNORE);
  say("MPI_File_read_at_all_end", 0, kBytes, -1);
  check_block(4);
}

static void seek(MPI_Offset offset, int whence, long long result) {
  MPI_File_seek(g_file, offset, whence);
  say("MPI_File_seek", offset, 0, result);
}

static void write_at_the_pointer(void) {
  MPI_Status status;
  MPI_Request request;
  seek(place(5), MPI_SEEK_SET, place(5));
  fill(5);
  MPI_File_write(g_file, OUT, &status);
  DONE("MPI_File_write", &status, place(5));
  seek(kBytes, MPI_SEEK_CUR, place(6));
  fill(6);
  MPI_File_write_all(g_file, OUT, &status);
  DONE("MPI_File_write_all", &status, place(6));
  seek(kBytes, MPI_SEEK_CUR, place(7));
  fill(7);
  MPI_File_iwrite(g_file, OUT, &request);
  say("MPI_File_iwrite", kBytes, 0, place(7));
  test_for(&request);
  seek(kBytes, MPI_SEEK_CUR, place(8));
  fill(8);
  MPI_File_iwrite_all(g_file, OUT, &request);
  say("MPI_File_iwrite_all", kBytes, 0, place(8));
  wait_for(&request);
  seek(kBytes, MPI_SEEK_CUR, place(9));
  fill(9);
  MPI_File_write_all_begin(g_file, OUT);
  say("MPI_File_write_all_begin", kBytes, 0, place(9));
  MPI_File_write_all_end(g_file, g_out, MPI_STATUS_IGNORE);
  say("MPI_File_write_all_end", 0, kBytes, -1);
}

static void read_at_the_pointer(void) {
  MPI_Status status;
  MPI_Request request;
  seek(place(5), MPI_SEEK_SET, place(5));
  MPI_File_read(g_file, IN, MPI_STATUS_IGNORE);
  say("MPI_File_read", kBytes, kBytes, place(5));
  check_block(5);
  seek(kBytes, MPI_SEEK_CUR, place(6));
  MPI_File_read_all(g_file, IN, &status);
  DONE("MPI_File_read_all", &status, place(6));
  check_block(6);
  seek(kBytes, MPI_SEEK_CUR, place(7));
  MPI_File_iread(g_file, IN, &request);
  say("MPI_File_iread", kBytes, 0, place(7));
  wait_for(&request);
  check_block(7);
  seek(kBytes, MPI_SEEK_CUR, place(8));
  MPI_File_iread_all(g_file, IN, &request);
  say("MPI_File_iread_all", kBytes, 0, place(8));
  test_for(&request);
  check_block(8);
  seek(kBytes, MPI_SEEK_CUR, place(9));
  MPI_File_read_all_begin(g_file, IN);
  say("MPI_File_read_all_begin", kBytes, 0, place(9));
  MPI_File_read_all_end(g_file, g_in, &status);
  say("MPI_File_read_all_end", 0, moved_bytes(&status), -1);
  check_block(9);
}

/// Half a block is there.
static void at_the_end(void) {
  MPI_Status status;
  MPI_Offset size;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_get_size(g_file, &size);
  CHECK(size == 20 * kBytes);
  seek(-kBytes / 2, MPI_SEEK_END, size - kBytes / 2);
  MPI_File_read(g_file, IN, &status);
  DONE("MPI_File_read", &status, size - kBytes / 2);
  CHECK(moved_bytes(&status) == kBytes / 2);
#ifdef OPEN_MPI
  fprintf(stderr, "skipped: a short MPI_File_iread_at: Open MPI 4.1 never completes it\n");
#else
  MPI_Request request;
  MPI_File_iread_at(g_file, size - kBytes / 2, IN, &request);
  say("MPI_File_iread_at", kBytes, 0, size - kBytes / 2);
  wait_for(&request);
#endif
  MPI_File_read_at(g_file, size + 8, IN, MPI_STATUS_IGNORE);
  say("MPI_File_read_at", kBytes, 0, size + 8);
}

static void view(MPI_Offset start, MPI_Datatype etype, MPI_Datatype filetype) {
  MPI_File_set_view(g_file, start, etype, filetype, "native", MPI_INFO_NULL);
  say("MPI_File_set_view", 0, 0, start);
}

static void through_views(void) {
  MPI_Status status;
  MPI_Datatype pairs;
  MPI_Datatype tile;
  // Two doubles of this rank, two of the other, and so on.
  const MPI_Offset start = kViewStart + g_rank * 2 * (MPI_Offset)sizeof(double);
  MPI_Type_contiguous(2, MPI_DOUBLE, &pairs);
  MPI_Type_create_resized(pairs, 0, 4 * sizeof(double), &tile);
  MPI_Type_commit(&tile);
  view(start, MPI_DOUBLE, tile);
  fill(10);
  MPI_File_write_all(g_file, OUT, &status);
  DONE("MPI_File_write_all", &status, start);
  fill(11);
  MPI_File_write_all(g_file, OUT, &status);
  DONE("MPI_File_write_all", &status, start + 2 * 4 * 8);
  fill(12);
  MPI_File_write_at(g_file, 9, OUT, &status);
  DONE("MPI_File_write_at", &status, start + 4 * 4 * 8 + 8);
  MPI_File_read_at(g_file, 4, IN, &status);
  DONE("MPI_File_read_at", &status, start + 2 * 4 * 8);
  check_block(11);
  MPI_File_read_at_all(g_file, 9, IN, &status);
  DONE("MPI_File_read_at_all", &status, start + 4 * 4 * 8 + 8);
  check_block(12);
  MPI_File_seek(g_file, 5, MPI_SEEK_SET);
  say("MPI_File_seek", 5 * 8, 0, start + 2 * 4 * 8 + 8);
  // No holes: doubles from 24 bytes on.
  view(24, MPI_DOUBLE, MPI_DOUBLE);
  MPI_File_read_at(g_file, (place(1) - 24) / 8, IN, &status);
  DONE("MPI_File_read_at", &status, place(1));
  check_block(1);
  view(0, MPI_BYTE, MPI_BYTE);
  MPI_Type_free(&pairs);
  MPI_Type_free(&tile);
}

static void at_the_shared_pointer(void) {
  MPI_Status status;
  MPI_Request request;
  MPI_File_seek_shared(g_file, 4096, MPI_SEEK_SET);
  say("MPI_File_seek_shared", 4096, 0, 4096);
  fill(20);
  MPI_File_write_shared(g_file, OUT, &status);
  DONE("MPI_File_write_shared", &status, -1);
  MPI_File_iwrite_shared(g_file, OUT, &request);
  say("MPI_File_iwrite_shared", kBytes, 0, -1);
  wait_for(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  fill(21);
  MPI_File_write_ordered(g_file, OUT, MPI_STATUS_IGNORE);
  say("MPI_File_write_ordered", kBytes, kBytes, -1);
  fill(22);
  MPI_File_write_ordered_begin(g_file, OUT);
  say("MPI_File_write_ordered_begin", kBytes, 0, -1);
  MPI_File_write_ordered_end(g_file, g_out, &status);
  say("MPI_File_write_ordered_end", 0, moved_bytes(&status), -1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_seek_shared(g_file, 4096, MPI_SEEK_SET);
  say("MPI_File_seek_shared", 4096, 0, 4096);
  MPI_File_read_shared(g_file, IN, MPI_STATUS_IGNORE);
  say("MPI_File_read_shared", kBytes, kBytes, -1);
  MPI_File_iread_shared(g_file, IN, &request);
  say("MPI_File_iread_shared", kBytes, 0, -1);
  wait_for(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_ordered(g_file, IN, &status);
  DONE("MPI_File_read_ordered", &status, -1);
  check_block(21);
  MPI_File_read_ordered_begin(g_file, IN);
  say("MPI_File_read_ordered_begin", kBytes, 0, -1);
  MPI_File_read_ordered_end(g_file, g_in, MPI_STATUS_IGNORE);
  say("MPI_File_read_ordered_end", 0, kBytes, -1);
  check_block(22);
}

/// What fails gives MPI's own error, and moves nothing.
static void errors(const char* folder) {
  char path[4096];
  int class;
  MPI_File file;
  MPI_Status status;
  snprintf(path, sizeof path, "%s/missing", folder);
  MPI_Error_class(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                  &class);
  CHECK(class == MPI_ERR_NO_SUCH_FILE);
  say("MPI_File_open", 0, 0, -1);
  MPI_Error_class(MPI_File_delete(path, MPI_INFO_NULL), &class);
  CHECK(class == MPI_ERR_NO_SUCH_FILE);
  say("MPI_File_delete", 0, 0, -1);
  snprintf(path, sizeof path, "%s/own-%d", folder, g_rank);
  CHECK(MPI_File_open(MPI_COMM_SELF, path,
                      MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file) == MPI_SUCCESS);
  say("MPI_File_open", 2 + 4 + 8 + 16, 0, -1);
  MPI_Error_class(MPI_File_read_at(file, 0, IN, &status), &class);
  CHECK(class != MPI_SUCCESS);
  say("MPI_File_read_at", kBytes, 0, 0);
  MPI_File_close(&file);
  CHECK(file == MPI_FILE_NULL);
  say("MPI_File_close", 0, 0, -1);
}

/// Opens a file and sets its view while the recording is paused; then writes.
static void opened_while_paused(const char* path) {
  MPI_Status status;
  MPI_Pcontrol(0);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &g_file);
  MPI_File_set_view(g_file, 1024, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
  MPI_Pcontrol(1);
  MPI_File_write_at(g_file, 4 * g_rank, OUT, &status);
  DONE("MPI_File_write_at", &status, 1024 + g_rank * kBytes);
  MPI_File_close(&g_file);
  say("MPI_File_close", 0, 0, -1);
}

int main(int argc, char** argv) {
  char path[4096];
  CHECK(argc == 2 || argc == 3);
  MPI_Init(&argc, &argv);
  g_rank = world_rank();
  CHECK(world_count() == 2);
  snprintf(path, sizeof path, "%s/said-%d", argv[1], g_rank);
  g_said = fopen(path, "w");
  CHECK(g_said != NULL);
  // Each rank spells the name in its own way.
  snprintf(path, sizeof path, g_rank == 0 ? "%s/data" : "%s/./data", argv[1]);
  if (argc == 3) {
    opened_while_paused(path);
    fclose(g_said);
    MPI_Finalize();
    return 0;
  }
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &g_file) == MPI_SUCCESS);
  say("MPI_File_open", 1 + 2 + 4, 0, -1);
  MPI_File_preallocate(g_file, 512);
  say("MPI_File_preallocate", 512, 0, -1);
  MPI_File_set_size(g_file, 0);
  say("MPI_File_set_size", 0, 0, -1);
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_File_set_info(g_file, hints);
  say("MPI_File_set_info", 0, 0, -1);
  MPI_Info_free(&hints);
  CHECK(MPI_File_set_atomicity(g_file, 0) == MPI_SUCCESS);
  say("MPI_File_set_atomicity", 0, 0, -1);
  at_explicit_offsets();
  write_at_the_pointer();
  read_at_the_pointer();
  at_the_end();
  MPI_Barrier(MPI_COMM_WORLD);
  at_the_shared_pointer();
  through_views();
#if MPI_VERSION >= 4
  MPI_Status status;
  fill(30);
  MPI_File_write_at_c(g_file, place(30), OUT, &status);
  DONE("MPI_File_write_at", &status, place(30));
#endif
  MPI_File_sync(g_file);
  say("MPI_File_sync", 0, 0, -1);
  MPI_File_close(&g_file);
  say("MPI_File_close", 0, 0, -1);
  errors(argv[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (g_rank == 0) {
    MPI_File_delete(path, MPI_INFO_NULL);
    say("MPI_File_delete", 0, 0, -1);
  }
  fclose(g_said);
  MPI_Finalize();
  return 0;
}
